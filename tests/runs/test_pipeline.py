"""`Pipeline` from Python: where it comes from, what it answers, what questions share."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections import Counter
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT

from leporello import Document, Pipeline, Run, compare
from leporello.core.errors import UserError
from leporello.engine.progress import Silent
from leporello.runs.ask import AskSettings

TEXT = "Ann found the fax.\n\nNed <b>has</b> a boat."
MAPPING = {"extends": "best-sentence", "chunker": {"class": "Paragraphs", "size": 5}}
QUESTIONS = ["Who found the fax?", "Who has a boat?"]


@pytest.fixture(name="pipeline")
def _pipeline() -> Pipeline:
    """Each paragraph is a chunk, and its best sentence the answer."""
    return Pipeline.from_yaml(MAPPING, cached=False)


def test_a_pipeline_comes_from_a_name_a_file_or_a_mapping(tmp_path: Path) -> None:
    """A file's default or only one needs no name; a mapping is checked as a file is."""
    file = tmp_path / "own.yaml"
    file.write_text("pipelines: {a: {extends: best-sentence, retriever: {k: 2}}}", "utf-8")
    for made in (
        Pipeline.from_yaml(file),
        Pipeline.from_yaml(str(file), "a"),
        Pipeline.from_yaml("best-sentence", overrides=["retriever.k=2"]),
        Pipeline.from_yaml({"extends": "a", "description": "b"}, config=[file]),
    ):
        assert made.stages.retriever.k == 2
    file.write_text("pipelines: {a: {extends: lead}, b: {extends: lead}}", "utf-8")
    faults: dict[str, Any] = {
        "the source declares: a, b": {"source": file},
        "no pipeline 'c'": {"source": file, "name": "c"},
        "but 'lead' is a pipeline": {"source": "lead", "name": "c"},
        "<mapping>:1: mine: unknown key 'x'": {"source": {"x": 1}},
        "there is no such file": {"source": tmp_path / "none.yaml"},
    }
    for told, given in faults.items():
        with pytest.raises(UserError, match=told):
            Pipeline.from_yaml(**given)


def test_questions_share_what_is_derived_from_a_document(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is loaded once until it changes; questions together are selected in one call."""
    calls = Counter[str]()

    def counted(cls: type, name: str) -> None:
        own = getattr(cls, name)

        @wraps(own)
        def call(*given: Any, **named: Any) -> Any:
            calls[name] += 1
            return own(*given, **named)

        monkeypatch.setattr(cls, name, call)

    for cls, name in ((AskSettings, "document"), (type(pipeline.stages.chunker), "chunk"),
                      (type(pipeline.stages.retriever), "search")):  # fmt: skip
        counted(cls, name)
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


def test_a_text_is_a_document_and_a_name_of_no_file_is_told(pipeline: Pipeline) -> None:
    """A mistyped path is not answered as if it were a text."""
    for given in (TEXT, Document("d", TEXT)):
        assert pipeline.answer(given, QUESTIONS[0]).text == "Ann found the fax."
    for missing in ("my report.pdf", Path("none")):
        with pytest.raises(UserError, match="there is no such file"):
            pipeline.answer(missing, "Who?")


def test_what_is_awaited_ends_with_its_task(pipeline: Pipeline) -> None:
    """Several wait at once; one that is cancelled reads nothing more."""
    told = Silent()

    async def both() -> list[str]:
        answers = await asyncio.gather(*(pipeline.answer_async(TEXT, q) for q in QUESTIONS))
        return [answer.text for answer in answers]

    async def cancelled() -> None:
        loop, begun, left = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
        search = type(pipeline.stages.retriever).search

        @wraps(search)
        def begin(*given: Any, **named: Any) -> Any:
            loop.call_soon_threadsafe(begun.set)
            assert left.wait(10)
            return search(*given, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(pipeline.stages.retriever), "search", begin)
            patch.setattr(type(pipeline.stages.reader), "read", lambda *_: pytest.fail("was read"))
            task = asyncio.create_task(pipeline.answer_async(TEXT, QUESTIONS[0]))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            left.set()
            await loop.shutdown_default_executor()

    assert asyncio.run(both()) == TEXT.split("\n\n")
    asyncio.run(cancelled())
    assert pipeline.answers(TEXT, QUESTIONS, told)


def test_results_are_frames_and_tables_of_a_notebook(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an answer, a run and a comparison; what a document says is text in them."""
    answer = pipeline.answer(TEXT, QUESTIONS[1])
    assert "Ned &lt;b&gt;has&lt;/b&gt; a boat." in answer._repr_html_()
    assert answer.text in [*answer.to_pandas()["text"]]
    run = asyncio.run(pipeline.run_async(["sample"], limit=2, out=tmp_path / "run"))
    assert isinstance(run, Run)
    [row] = run.to_pandas().to_dict("records")
    assert (row["pipeline"], row["f1"]) == ("mine", run.results[0].scores["f1"])
    found = compare([run.directory]).to_pandas()
    assert found.query("score == 'f1'")["value"][0] == row["f1"]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match=r"pip install 'leporello\[pandas\]'"):
        run.to_pandas()


def test_the_python_of_the_guide_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/from-python.md, but for what is marked."""
    monkeypatch.chdir(ROOT)
    guide = (ROOT / "docs" / "from-python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?<!not run -->\n)```python\n(.*?)```", guide, re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102 -- this project's own guide
    assert len(blocks) == len(names["told"]) + 1
