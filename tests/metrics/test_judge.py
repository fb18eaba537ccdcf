"""Tests of the judge: its reads, verdicts, resumed runs and separate scores."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import leporello, write_files

from leporello.api import load_pipelines
from leporello.chunkers import Sentences
from leporello.combiners import Stuff
from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.core.calls.budget import Budget
from leporello.core.protocols import MetricEntry
from leporello.core.records import Document, Example, Output, Read
from leporello.engine.shard_rows import Rows, rows_of
from leporello.metrics.judge import Judge
from leporello.readers import BestSentence
from leporello.retrievers import BM25
from leporello.testing.texts import long_text


@dataclass(frozen=True)
class Opinion:
    """Reader that returns a fixed text, or a mark by the answer's length."""

    reply: str = ""

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        return [Output(self.reply or str(len(r.passages[-1]) % 5)) for r in inputs]  # type: ignore[arg-type]

    def count(self, texts: Sequence[str]) -> list[int]:
        return [*map(len, texts)]


EXAMPLES = [
    Example(
        f"q{n}", Document(f"d{n}", long_text(900 + n)), "Who has the cat?", references=("the cat",),
        metadata={"human": n},
    )
    for n in range(5)
]  # fmt: skip


def _rows(folder: Path, reply: str = "", budget: Budget = Budget(), **judge: object) -> Rows:  # noqa: B008
    stages = Pipeline(
        Sentences(size=50), BM25(k=2), BestSentence(), Stuff(), roles={"judge": Opinion(reply)},
        budget=budget,
    )  # fmt: skip
    metrics: list[MetricEntry] = ["f1", {"class": "judge", **judge}]
    return rows_of(folder / "journal.jsonl", EXAMPLES, stages, metrics=metrics)


def test_marks_become_scores_with_agreement(tmp_path: Path) -> None:
    rows = _rows(tmp_path)
    verdicts = [row["statistics"]["judge"] for row in rows]
    assert all(verdict["judge"] in (0, 25, 50, 75, 100) for verdict in verdicts)
    assert [verdict["beside"]["people"] for verdict in verdicts] == [0, 1, 2, 3, 4]
    assert all("f1" in verdict["beside"] for verdict in verdicts)
    scores = metrics_of(["judge"])["judge"].aggregate(verdicts)
    assert {"judge", "judge_unanswered", "judge_agrees[people]"} <= scores.keys()
    assert all([call["role"] for call in row["calls"]] == ["", "judge"] for row in rows)


def test_a_judge_that_prefers_a_position_scores_both_equal(tmp_path: Path) -> None:
    """The judge sees each pair in both orders."""
    for row in _rows(tmp_path, "The first answer.", mode="pairwise"):
        assert row["statistics"]["judge"]["judge"] == 50


@pytest.mark.parametrize("reply", ["what a lovely day", "7", "first or second"])
def test_nonsense_is_not_a_verdict_and_loses_no_prediction(tmp_path: Path, reply: str) -> None:
    mode = "pairwise" if "first" in reply else "pointwise"
    rows = _rows(tmp_path, reply, mode=mode)
    assert all(row["prediction"]["prediction"] for row in rows)
    scores = Judge().aggregate([row["statistics"]["judge"] for row in rows])
    assert scores == {"judge_unanswered": 100}


def test_a_resumed_shard_has_the_same_verdicts(tmp_path: Path) -> None:
    """The journal is cut after each line."""
    expected = _rows(tmp_path)
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        (tmp_path / "journal.jsonl").write_bytes(b"".join(lines[:count]))
        assert _rows(tmp_path) == expected


def test_a_missing_judge_is_reported_before_any_work(tmp_path: Path) -> None:
    cast = "{extends: best-sentence, readers: {jugde: Lead}}"
    alone = "{extends: best-sentence, reader: Lead}"
    write_files(tmp_path, {"mine.yaml": f"pipelines:\n  cast: {cast}\n  alone: {alone}\n"})
    options = ("--task", "sample", "--config", tmp_path / "mine.yaml", "--metric")
    message = leporello("run", "cast", *options, "judge", status=2).stderr
    assert "judge requires a reader with the role 'judge'; did you mean 'jugde'" in message
    entry = json.dumps({"class": "judge", "mode": "pairwise", "against": str(tmp_path / "no")})
    assert str(tmp_path / "no") in leporello("run", "alone", *options, entry, status=2).stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("task", ["narrative_qa", "qmsum"])
def test_judged_tasks_keep_opinions_away_from_official_scores(task: str) -> None:
    config = load_pipelines([])
    judged, plain = (config.tasks_named([f"{kind}/{task}"])[0] for kind in ("judged", "scrolls"))
    official = [*metrics_of(plain.metrics_of(plain.spec.build()))]
    assert [*metrics_of(judged.metrics_of(judged.spec.build()))] == [*official, "judge"]
    columns = [column for suite in config.suites.values() for column in suite.columns.values()]
    in_suites = {name for column in columns for name, _ in column.parts}
    assert f"scrolls/{task}" in in_suites
    assert f"judged/{task}" not in in_suites
