"""Metrics that are computed once all is read: ended in between, gone on with, and equal then."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    path = tmp_path / "own.yaml"
    path.write_text("tasks: {rows: {class: JsonLines, path: rows.jsonl, metrics: [bleu_coco, f1]}}")
    return path


@dataclass
class EndedAfter(Interrupts):
    """Ends a run once a file has so many lines."""

    path: Path
    lines: int

    def __post_init__(self) -> None:
        super().__init__()

    def check(self) -> None:
        """Looks at the file."""
        if self.path.exists() and self.path.read_bytes().count(b"\n") >= self.lines:
            raise Stopped("interrupted")


def test_what_was_ended_goes_on_behind_the_last_example(config: Path, tmp_path: Path) -> None:
    """A metric of which some is missing has no score; what a kill left half is computed again."""
    kept = tmp_path / "run/lead/rows/.later.jsonl"
    ended = run(["lead"], ["rows"], config=[config], out=tmp_path / "run", workers=0,
                interrupts=EndedAfter(kept, 2))  # fmt: skip
    [result] = ended.results
    assert (ended.stopped, [*result.scores]) == ("interrupted", ["f1"])
    assert [
        *(text.partition(",")[0] for text in result.faults), *result.faults.values()
    ] == ["metric bleu_coco: is computed after all reads", 2]  # fmt: skip
    before = kept.read_bytes()
    kept.write_bytes(before + b'{"key": ')
    done = run(["lead"], ["rows"], config=[config], out=tmp_path / "run", workers=0)
    [result] = done.results
    assert (done.stopped, result.faults) == ("", {})
    assert kept.read_bytes().startswith(before)
    assert kept.read_bytes().count(b"\n") == 4
    alone = score(tmp_path / "run/lead/rows/predictions.jsonl", "rows", config=[config])
    assert result.scores == alone.scores
    assert 0 < result.scores["bleu_4"] < 100


def test_a_program_that_is_not_there_is_told_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is to be run."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="'bleu_coco' runs Java programs"):
        run(["lead"], ["sample"], metrics=["f1", "bleu_coco"], out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
