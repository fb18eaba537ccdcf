"""Tests of `Pipeline` in Python: its sources, its answers, and work that questions share."""

import asyncio
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT

from leporello import Document, Pipeline, Run, compare
from leporello.core.errors import UserError
from leporello.engine.progress import Listener
from leporello.runs.ask import AskSettings

TEXT = "Ann found the fax.\n\nNed <b>has</b> a boat."
MAPPING = {"extends": "best-sentence", "chunker": {"class": "Paragraphs", "size": 5}}
QUESTIONS = ["Who found the fax?", "Who has a boat?"]


@pytest.fixture(name="pipeline")
def _pipeline() -> Pipeline:
    """A pipeline whose chunks are paragraphs, and whose answer is the best sentence."""
    return Pipeline.from_yaml(MAPPING, cached=False)


def test_a_pipeline_comes_from_a_name_a_file_or_a_mapping(tmp_path: Path) -> None:
    """The default or only pipeline of a file needs no name; mappings are checked like files."""
    file = tmp_path / "own.yaml"
    file.write_text("pipelines: {a: {extends: best-sentence, retriever: {k: 2}}}", "utf-8")
    for pipeline in (
        Pipeline.from_yaml(file),
        Pipeline.from_yaml(str(file), "a"),
        Pipeline.from_yaml("best-sentence", overrides=["retriever.k=2"]),
        Pipeline.from_yaml({"extends": "a", "description": "b"}, config=[file]),
    ):
        assert pipeline.stages.retriever.k == 2
    file.write_text("pipelines: {a: {extends: lead}, b: {extends: lead}}", "utf-8")
    faults: dict[str, Any] = {
        "the source declares: a, b": {"source": file},
        "no pipeline 'c'": {"source": file, "name": "c"},
        "but 'lead' is a pipeline": {"source": "lead", "name": "c"},
        "<mapping>:1: mine: unknown key 'x'": {"source": {"x": 1}},
        "there is no such file": {"source": tmp_path / "none.yaml"},
        "overrides must be a list": {"source": "lead", "overrides": "reader.words=3"},
        "config must be a list": {"source": "lead", "config": file},
        "a source is a name": {"source": None},
    }
    for message, arguments in faults.items():
        with pytest.raises(UserError, match=message):
            Pipeline.from_yaml(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.answer(None, "Who?"), "a document is a path"),
        (lambda p: p.answer(TEXT, None), "a question is a text"),
        (lambda p: p.answers(TEXT, "Who?"), "questions must be a list"),
        (lambda p: p.run("sample"), "tasks must be a list"),
        (lambda _: compare("runs"), "runs must be a list"),
        (lambda _: compare(["none"]), "none: is not a run"),
    ],
)
def test_wrong_arguments_are_reported(
    pipeline: Pipeline, call: Callable[[Any], object], message: str
) -> None:
    """A plain text is not a list of its letters, and None is not a text."""
    with pytest.raises(UserError, match=message):
        call(pipeline)


def test_questions_share_chunks_and_indexes(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = Counter[str]()

    def count_calls(cls: type, name: str) -> None:
        method = getattr(cls, name)

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            return method(*arguments, **options)

        monkeypatch.setattr(cls, name, call)

    for cls, name in ((AskSettings, "document"), (type(pipeline.stages.chunker), "chunk"),
                      (type(pipeline.stages.retriever), "search")):  # fmt: skip
        count_calls(cls, name)
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    answers = pipeline.answers(path, QUESTIONS)
    assert [answer.text for answer in answers] == TEXT.split("\n\n")
    assert answers[0].cost.reads == 1
    assert pipeline.answer(str(path), QUESTIONS[1]).text == answers[1].text
    assert calls == {"document": 1, "chunk": 1, "search": 2}
    path.write_text("Now Ann has the boat.", encoding="utf-8")
    assert pipeline.answer(path, QUESTIONS[1]).text == "Now Ann has the boat."
    assert pipeline.answers(path, []) == []


def test_a_text_is_a_document_but_a_missing_file_is_an_error(pipeline: Pipeline) -> None:
    """A mistyped path is not treated as a text."""
    for source in (TEXT, Document("d", TEXT)):
        assert pipeline.answer(source, QUESTIONS[0]).text == "Ann found the fax."
    for missing in ("my report.pdf", Path("none")):
        with pytest.raises(UserError, match="there is no such file"):
            pipeline.answer(missing, "Who?")


def test_a_cancelled_answer_stops_reading(pipeline: Pipeline) -> None:
    """Several answers can be awaited at once; a cancelled one reads nothing more."""
    listener = Listener()

    async def both() -> list[str]:
        answers = await asyncio.gather(*(pipeline.answer_async(TEXT, q) for q in QUESTIONS))
        return [answer.text for answer in answers]

    async def cancelled() -> None:
        loop = asyncio.get_running_loop()
        is_searching, is_cancelled = asyncio.Event(), threading.Event()
        search = type(pipeline.stages.retriever).search

        @wraps(search)
        def wait(*arguments: Any, **options: Any) -> Any:
            loop.call_soon_threadsafe(is_searching.set)
            assert is_cancelled.wait(10)
            return search(*arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(pipeline.stages.retriever), "search", wait)
            patch.setattr(type(pipeline.stages.reader), "read", lambda *_: pytest.fail("was read"))
            task = asyncio.create_task(pipeline.answer_async(TEXT, QUESTIONS[0]))
            await is_searching.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            is_cancelled.set()
            await loop.shutdown_default_executor()

    assert asyncio.run(both()) == TEXT.split("\n\n")
    asyncio.run(cancelled())
    assert pipeline.answers(TEXT, QUESTIONS, listener)


def test_results_convert_to_pandas_and_html(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = pipeline.answer(TEXT, QUESTIONS[1])
    assert "Ned &lt;b&gt;has&lt;/b&gt; a boat." in answer._repr_html_()
    assert answer.text in [*answer.to_pandas()["text"]]
    run = asyncio.run(pipeline.run_async(["sample"], limit=2, out=tmp_path / "run"))
    assert isinstance(run, Run)
    [row] = run.to_pandas().to_dict("records")
    assert (row["pipeline"], row["f1"]) == ("mine", run.results[0].scores["f1"])
    frame = compare([run.directory]).to_pandas()
    assert frame.query("score == 'f1'")["value"][0] == row["f1"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'leporello\[pandas\]'"):
        run.to_pandas()


def test_the_python_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """All code of docs/from-python.md runs, except marked blocks."""
    monkeypatch.chdir(ROOT)
    guide = (ROOT / "docs" / "from-python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?<!not run -->\n)```python\n(.*?)```", guide, re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 -- this project's own guide
    assert len(blocks) == len(names["told"]) + 1
