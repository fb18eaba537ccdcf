"""Runs from Python: results, predictions, and what is shared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leporello.api import ConfigError, UserError, ask, load_pipelines, run

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
    """A task of three questions on two documents, and a swept pipeline."""
    rows = [
        {"id": "a", "document_id": "x", "document": "one two three", "question": "two"},
        {"id": "b", "document_id": "y", "document": "four five", "question": "five"},
        {"id": "c", "document_id": "x", "question": "three", "references": ["THREE"]},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    (tmp_path / "plug.py").write_text(PLUG_IN, encoding="utf-8")
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"""
pipelines:
  mine:
    chunker: {{class: FixedTokens, size: 1}}
    retriever: {{class: BM25, k: [1, 2]}}
    reader: {{class: "./plug.py:Loading", log: "{tmp_path}/log.txt"}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
""",
        encoding="utf-8",
    )
    return path


def test_a_run_returns_results_and_predictions(config: Path, tmp_path: Path) -> None:
    """One result a point, predictions with documents together, scores over what has references."""
    done = run(["mine"], ["rows"], config=[config], out=tmp_path / "out")
    assert [result.pipeline for result in done.results] == [
        "mine@retriever.k=1",
        "mine@retriever.k=2",
    ]
    predictions = list(done.predictions("mine@retriever.k=2", "rows"))
    assert [(p.id, p.prediction) for p in predictions] == [
        ("a", "TWO"),
        ("c", "THREE"),
        ("b", "FIVE"),
    ]
    assert done.results[0].scores == {"f1": 100.0}
    assert done.results[0].examples == 3
    assert done.failures == 0


def test_points_of_a_sweep_share_one_reader(config: Path, tmp_path: Path) -> None:
    """A stage that is the same in two pipelines is built, and its model loaded, once."""
    run(["mine"], ["rows"], config=[config], out=tmp_path / "out")
    assert (tmp_path / "log.txt").read_text() == "loaded\n"


def test_the_manifest_and_the_resolved_config_say_what_was_run(
    config: Path, tmp_path: Path
) -> None:
    """Every default is written out, and run.yaml is a config itself."""
    run(["mine"], ["rows"], config=[config], out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert {"leporello", "python", "libraries", "limits", "jobs"} <= manifest.keys()
    job = manifest["jobs"][0]
    assert job["signature"]["pipeline"]["retriever"]["k1"] == 1.5
    assert set(job["signature"]) == {"pipeline", "task", "data", "sources", "models"}
    again = load_pipelines([tmp_path / "out" / "run.yaml"])
    [point] = again.select(["mine@retriever.k=2"])
    assert point.build().retriever.k == 2


def test_later_pipelines_join_a_run_directory(config: Path, tmp_path: Path) -> None:
    """What ran there before stays in the manifest and in run.yaml."""
    out = tmp_path / "out"
    run(["mine@retriever.k=1"], ["rows"], config=[config], out=out)
    run(["lead"], ["rows"], config=[config], out=out)
    jobs = json.loads((out / "manifest.json").read_text())["jobs"]
    assert [job["pipeline"] for job in jobs] == ["mine@retriever.k=1", "lead"]


def test_a_directory_with_other_files_is_left_alone(config: Path, tmp_path: Path) -> None:
    """A run is never mixed with what is no run."""
    with pytest.raises(UserError, match="holds other files"):
        run(["lead"], ["rows"], config=[config], out=tmp_path)


def test_the_faults_of_all_tasks_are_told_together(config: Path, tmp_path: Path) -> None:
    """Data is read and checked before any work."""
    (tmp_path / "bad.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "worse.jsonl").write_text("nothing\n", encoding="utf-8")
    text = config.read_text() + (
        "  bad: {class: JsonLines, path: bad.jsonl}\n"
        "  worse: {class: JsonLines, path: worse.jsonl}\n"
    )
    config.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        run(["lead"], ["bad", "worse"], config=[config], out=tmp_path / "out")
    assert {fault.file.name for fault in caught.value.faults if fault.file} == {
        "bad.jsonl",
        "worse.jsonl",
    }
    assert not (tmp_path / "out").exists()


def test_ask_takes_one_pipeline(config: Path, tmp_path: Path) -> None:
    """A swept one must be named to the point."""
    text = tmp_path / "text.txt"
    text.write_text("one two three", encoding="utf-8")
    answer = ask(text, "three", pipeline="mine@retriever.k=1", config=[config])
    assert answer.text == "THREE"
    assert [passage.text for passage in answer.passages] == ["three"]
    with pytest.raises(UserError, match="is 2: name one of them"):
        ask(text, "three", pipeline="mine", config=[config])
