"""Tests of metrics that are computed after all reads: interrupted and resumed, with same scores."""

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import write_files

from leporello.analysis.score import score
from leporello.api import UserError, run
from leporello.core.errors import Stopped
from leporello.jobs.interrupts import Interrupts


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A task of four texts, scored by BLEU."""
    texts = ("A fox sat.", "A dog sat on a gate.", "Nothing.", "A fox and a dog.")
    rows = [
        {"id": str(n), "document": text, "references": [f"{text} It was so."]}
        for n, text in enumerate(texts)
    ]
    text = "tasks: {rows: {class: JsonLines, path: rows.jsonl, metrics: [bleu_coco, f1]}}"
    write_files(tmp_path, {"rows.jsonl": rows, "own.yaml": text})
    return tmp_path / "own.yaml"


@dataclass
class EndedAfter(Interrupts):
    """Stops the run while the metric is computed, after a number of examples."""

    examples: int

    def __post_init__(self) -> None:
        super().__init__()

    def check(self) -> None:
        """Raises `Stopped` after some calls from `LaterMetrics`."""
        self.examples -= sys._getframe(2).f_code.co_name == "_computed"
        if self.examples < 0:
            raise Stopped("interrupted")


def test_an_interrupted_metric_is_computed_by_the_next_run(config: Path, tmp_path: Path) -> None:
    """A metric with missing examples has no score."""
    interrupted = run(["lead"], ["rows"], config=[config], out=tmp_path / "run", workers=0,
                interrupts=EndedAfter(2))  # fmt: skip
    [result] = interrupted.results
    assert (interrupted.stopped, [*result.scores]) == ("interrupted", ["f1"])
    assert [
        *(text.partition(",")[0] for text in result.faults), *result.faults.values()
    ] == ["metric bleu_coco: is computed after all reads", 2]  # fmt: skip
    resumed = run(["lead"], ["rows"], config=[config], out=tmp_path / "run", workers=0)
    [result] = resumed.results
    assert (resumed.stopped, result.faults) == ("", {})
    separate = score(tmp_path / "run/lead/rows/predictions.jsonl", "rows", config=[config])
    assert result.scores == separate.scores
    assert 0 < result.scores["bleu_4"] < 100


def test_a_missing_program_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run does not start, even if other metrics could be computed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="'bleu_coco' runs Java programs"):
        run(["lead"], ["sample"], metrics=["f1", "bleu_coco"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
