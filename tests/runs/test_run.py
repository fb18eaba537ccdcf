"""Tests of runs from Python: results, predictions and shared stages."""

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, write_files

from leporello.analysis.datasets import analyze_run
from leporello.analysis.score import score
from leporello.api import ConfigError, UserError, ask, compare, load_pipelines, run
from leporello.engine.database import counts_in
from leporello.engine.limits import Limits

PLUG_IN = """
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from leporello import Output

@dataclass(frozen=True)
class Loading:
    log: str

    @cached_property
    def model(self):
        with Path(self.log).open("a") as file:
            file.write("loaded\\n")

    def read(self, inputs):
        self.model
        return [Output(read.question.upper()) for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A task with three questions on two documents, and a swept pipeline."""
    rows: list[dict[str, Any]] = [
        {"id": "a", "document_id": "x", "document": "one two three", "question": "two"},
        {"id": "b", "document_id": "y", "document": "four five", "question": "five"},
        {"id": "c", "document_id": "x", "question": "three", "references": ["THREE"]},
    ]
    config = f"""
pipelines:
  mine:
    chunker: {{class: FixedTokens, size: 1}}
    retriever: {{class: BM25, k: [1, 2]}}
    reader: {{class: "./plug.py:Loading", log: "{tmp_path}/log.txt"}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
"""
    write_files(tmp_path, {"rows.jsonl": rows, "plug.py": PLUG_IN, "mine.yaml": config})
    return tmp_path / "mine.yaml"


def test_a_run_returns_results_and_predictions(config: Path, tmp_path: Path) -> None:
    """Results per point, predictions grouped by document, scores of examples with references.

    A stage that is equal in two pipelines is built once, and its model is loaded once.
    """
    result = run(["mine"], ["rows"], config=[config], out=tmp_path / "out", workers=0)
    points = [score.pipeline for score in result.results]
    assert points == ["mine@retriever.k=1", "mine@retriever.k=2"]
    predictions = [(p.id, p.prediction) for p in result.predictions(points[1], "rows")]
    assert predictions == [("a", "TWO"), ("c", "THREE"), ("b", "FIVE")]
    assert result.results[0].scores == {"f1": 100.0}
    assert (result.results[0].examples, result.failures) == (3, 0)
    assert (tmp_path / "log.txt").read_text() == "loaded\n"


def test_the_manifest_and_resolved_config_describe_the_run(config: Path, tmp_path: Path) -> None:
    """Later pipelines join its directory."""
    for name in ("mine", "lead"):
        run([name], ["rows"], config=[config], out=tmp_path / "out", workers=0)
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"leporello", "python", "libraries", "limits", "jobs"} <= manifest.keys()
    job, *others = manifest["jobs"]
    assert [later["pipeline"] for later in others] == ["mine@retriever.k=2", "lead"]
    assert job["signature"]["pipeline"]["retriever"]["k1"] == 1.5
    parts = {"sources", "models", "libraries", "python"}
    assert set(job["signature"]) == {"pipeline", "task", "data", "threads", *parts}
    again = load_pipelines([tmp_path / "out" / "run.yaml"])
    [point] = again.select(["mine@retriever.k=2"])
    assert point.build().retriever.k == 2


def test_a_directory_with_other_files_is_left_alone(config: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has other files"):
        run(["lead"], ["rows"], config=[config], out=tmp_path, workers=0)


def test_the_faults_of_all_tasks_are_reported_together(config: Path, tmp_path: Path) -> None:
    text = config.read_text() + (
        "  bad: {class: JsonLines, path: bad.jsonl}\n"
        "  worse: {class: JsonLines, path: worse.jsonl}\n"
    )
    write_files(tmp_path, {"bad.jsonl": "{}\n", "worse.jsonl": "nothing\n", "mine.yaml": text})
    with pytest.raises(ConfigError) as caught:
        run(["lead"], ["bad", "worse"], config=[config], out=tmp_path / "out", workers=0)
    files = {fault.file.name for fault in caught.value.faults if fault.file}
    assert files == {"bad.jsonl", "worse.jsonl"}
    tasks = [_plug_in_task(tmp_path, "yield", "1 / 0"), config]
    with pytest.raises(UserError, match=r"(?s)bad\.jsonl:1.*ZeroDivisionError"):
        run(["lead"], ["bad", "t"], config=tasks, out=tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


def test_changed_results_of_one_pipeline_are_restored_while_another_has_work(
    config: Path, tmp_path: Path
) -> None:
    """Without a read."""
    names = ("k=1/rows/statistics.jsonl", "k=2/rows/failures.jsonl")
    changed, missing = (tmp_path / f"out/mine@retriever.{name}" for name in names)
    run(["mine"], ["rows"], config=[config], out=tmp_path / "out", workers=0)
    content = changed.read_bytes()
    changed.write_bytes(b"{}\n")
    missing.unlink()
    run(["mine"], ["rows"], config=[config], out=tmp_path / "out", workers=0)
    assert (changed.read_bytes(), missing.read_bytes()) == (content, b"")
    assert (tmp_path / "log.txt").read_text() == "loaded\n"


def test_ask_takes_one_pipeline(config: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("one two three", encoding="utf-8")
    answer = ask(text, "three", pipeline="mine@retriever.k=1", config=[config])
    assert answer.text == "THREE"
    assert [passage.text for passage in answer.passages] == ["three"]
    with pytest.raises(UserError, match="is 2 points of a sweep: name one of them"):
        ask(text, "three", pipeline="mine", config=[config])


def _plug_in_task(folder: Path, body: str, fingerprint: str = '"1"') -> Path:
    task = f"""
from dataclasses import dataclass
from leporello import Document, Example, Span

@dataclass(frozen=True)
class Mine:
    metrics: tuple[str, ...] = ("f1",)

    def examples(self):
        document = Document("d", "some text")
        {body}

    def fingerprint(self):
        return {fingerprint}
"""
    config = 'tasks: {t: {class: "./tasks_of_mine.py:Mine"}}'
    write_files(folder, {"tasks_of_mine.py": task, "tasks.yaml": config})
    return folder / "tasks.yaml"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("yield 3", "yields 3, which is not an Example"),
        ("return None", "task 't' failed"),
        ("raise KeyError('k')", "KeyError: 'k'"),
        ("yield Example('a', 'text')", "with a document that is not a Document"),
        ("yield from [Example('a', document)] * 2", "yields the id 'a' twice"),
        ("yield Example('a', document, references=(3,))", "references are not a tuple of texts"),
        ("yield Example('a', document, references='abc')", "whose references are not a tuple"),
        ("yield Example('a', document, evidence=(Span(0, 99),))", "outside its document"),
    ],
)
def test_a_plug_in_task_with_errors_is_reported(tmp_path: Path, body: str, message: str) -> None:
    config = [_plug_in_task(tmp_path, body)]
    with pytest.raises(UserError, match="task 't'") as caught:
        run(["lead"], ["t"], config=config, out=tmp_path / "out", workers=0)
    assert message in str(caught.value)


def test_a_default_that_yaml_cannot_give_is_left_out_of_the_resolved_config(tmp_path: Path) -> None:
    """The run can still be explained and resumed."""
    plug_in = """
from dataclasses import dataclass, field
from leporello import Hit

@dataclass(frozen=True)
class Odd:
    names: list = field(default_factory=list)
    weights: object = (1, 2)
    k: int = 1

    def retrieve(self, questions, chunks):
        return [[Hit(chunk, 1.0) for chunk in chunks[: self.k]] for _ in questions]
"""
    config = 'pipelines: {mine: {retriever: {class: "./plug.py:Odd"}, reader: {class: Lead}}}'
    write_files(tmp_path, {"plug.py": plug_in, "mine.yaml": config})
    options: dict[str, Any] = {"config": [tmp_path / "mine.yaml"], "limit": 2, "workers": 0}
    run(["mine"], ["sample"], out=tmp_path / "out", **options)
    [point] = load_pipelines([tmp_path / "out" / "run.yaml"]).select(["mine"])
    assert point.build().retriever.weights == (1, 2)


def _unfinished(folder: Path) -> Path:
    """Runs a plug-in that imports a module and reads a model folder on two of three examples."""
    plug_in = """
from dataclasses import dataclass
from leporello import Output
from leporello.core.protocols import ModelSource

@dataclass(frozen=True)
class Suffixing:
    model: ModelSource

    def read(self, inputs):
        from helper_of_mine import SUFFIX
        return [Output(read.question + SUFFIX) for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""
    config = """
pipelines:
  mine:
    tasks: [rows]
    retriever: {class: First, k: 2}
    reader: {class: "./plug.py:Suffixing", model: ./model}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
"""
    rows = [{"id": n, "document": n * 9, "question": n} for n in "abc"]
    helper, path = "SUFFIX = '!'\n", folder / "mine.yaml"
    files = {"plug.py": plug_in, "mine.yaml": config, "helper_of_mine.py": helper}
    write_files(folder, {**files, "rows.jsonl": rows, "model/config.json": "{}"})
    leporello("run", *HERE, "mine", "--config", path, "--out", folder / "out", "--limit", "2")
    return path


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("mine.yaml", "k: 2", "k: 3", "pipeline.retriever.k: 2 -> 3"),
        ("plug.py", "read.question +", "read.question * 2 +", "sources.plug.py:Suffixing: "),
        ("helper_of_mine.py", "!", "?", "sources.plug.py:Suffixing: "),
        ("model/config.json", "{}", "{ }", "models.model: 'sha256:"),
        ("rows.jsonl", "ccc", "ccd", "data: changed"),
    ],
)
def test_an_edit_during_an_unfinished_run_is_noticed(
    tmp_path: Path, file: str, old: str, new: str, message: str
) -> None:
    """The same command names the edit and fails; with `--update` it repeats the affected work."""
    config = _unfinished(tmp_path)
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new, 1))
    arguments = ("run", *HERE, "mine", "--config", config, "--out", tmp_path / "out")
    error = leporello(*arguments, status=2).stderr
    assert f"mine on rows: {message}" in error
    assert "run with --update to repeat the affected examples" in error
    assert counts_in(tmp_path / "out" / "journal" / "mine" / "rows" / "00000.sqlite").examples == 2
    leporello(*arguments, "--update")
    leporello(*arguments, "--out", tmp_path / "fresh")
    for name in ("predictions.jsonl", "statistics.jsonl"):
        updated, fresh = (tmp_path / run / "mine" / "rows" / name for run in ("out", "fresh"))
        assert updated.read_bytes() == fresh.read_bytes()


def test_an_answer_is_normalised_only_if_the_pipeline_declares_it(tmp_path: Path) -> None:
    """Every table marks pipelines with normalised answers; statistics describe raw answers."""
    plug_in = (
        "from leporello.tasks import JsonLines\n\nclass Shortened(JsonLines):\n"
        "    def normalise(self, text, example):\n        return text.split()[-1]\n"
    )
    rows = [{"id": "a", "document": "It is four", "references": ["four"]}]
    pipelines = (
        "pipelines:\n  as-it-is: {reader: {class: Lead}}\n"
        "  rewritten: {extends: as-it-is, normalised: true}\n"
        "tasks:\n  rows: {class: ./own.py:Shortened, path: rows.jsonl, metrics: [exact_match]}\n"
    )
    write_files(tmp_path, {"own.py": plug_in, "rows.jsonl": rows, "mine.yaml": pipelines})
    config, out = [tmp_path / "mine.yaml"], tmp_path / "run"
    result = run(["as-it-is", "rewritten"], ["rows"], config=config, out=out, workers=0)
    scores = [(r.scores["exact_match"], r.marks) for r in result.results]
    assert scores == [(0.0, ""), (100.0, " (normalised)")]
    [board] = compare([out]).boards
    assert "rewritten's answers were normalised: no official score" in board.warnings
    assert [j.predictions.mean for j in analyze_run(out) if j.predictions] \
        == [3, 3]  # fmt: skip
    scored = score(out / "rewritten" / "rows" / "predictions.jsonl", "rows", config=config)
    assert (scored.scores, scored.marks) == ({"exact_match": 100.0}, " (normalised)")
    assert run(["as-it-is"], ["rows"], config=config, overrides=["normalised=true"],
               out=tmp_path / "set", workers=0).results[0].marks  # fmt: skip
    with pytest.raises(ConfigError, match="must be true or false, got 'often'"):
        load_pipelines(config, ["normalised=often"], ["as-it-is"])
    (tmp_path / "old.yaml").write_text("tasks: {q: {class: Scrolls, name: qmsum, normalised: no}}")
    with pytest.raises(ConfigError, match=r"'normalised'; since 0\.3 it is a key of pipelines"):
        load_pipelines([tmp_path / "old.yaml"])


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"limit": -1}, "limit must be at least 1, got -1"),
        ({"max_failures": -0.5}, "max_failures must be at least 0"),
        ({"limits": Limits(window=0)}, "window must be at least 1"),
    ],
)
def test_numbers_out_of_range_are_refused_before_a_run_has_a_directory(
    config: Path, tmp_path: Path, options: dict[str, Any], fault: str
) -> None:
    with pytest.raises(UserError, match=fault):
        run(["best-sentence"], ["sample"], config=[config], out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
