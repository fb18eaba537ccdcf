"""Finished runs side by side, as the command line compares them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello
from results import reseal

from leporello.analysis.comparison.comparison import compare
from leporello.analysis.comparison.scores import Draws
from leporello.analysis.comparison.tables import tables_of
from leporello.core.errors import UserError
from leporello.runs.run import run

FEW = Draws(samples=400)
CONFIG = """
pipelines:
  right:
    reader: {class: FixedAnswer, answer: "the mill"}
  wrong:
    reader: {class: FixedAnswer, answer: "a cat"}
  long_name_with_$pecial&characters:
    reader: {class: FixedAnswer, answer: "the mill and a cat"}
  breaks:
    reader: {class: "./broken.py:Broken"}
tasks:
  mills: {class: JsonLines, path: mills.jsonl, metrics: [f1, exact_match]}
  others: {class: JsonLines, path: others.jsonl, metrics: [f1]}
"""
BROKEN = """
from dataclasses import dataclass
from leporello import Output

@dataclass(frozen=True)
class Broken:
    def read(self, inputs):
        if any("3" in read.question for read in inputs):
            raise ValueError("three")
        return [Output("the mill") for _ in inputs]

    def count(self, texts):
        return [0 for _ in texts]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with four pipelines and two tasks of a few questions."""
    base = tmp_path_factory.mktemp("compared")
    (base / "mine.yaml").write_text(CONFIG)
    (base / "broken.py").write_text(BROKEN)
    rows = [
        {
            "id": f"q{number}",
            "document_id": f"d{number // 4}",
            "document": f"Story {number // 4}: he left them a mill and a cat.",
            "question": f"What, {number}?",
            "references": ["a cat" if number % 4 == 0 else "the mill"],
        }
        for number in range(16)
    ]
    for name in ("mills", "others"):
        (base / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return base


@pytest.fixture(scope="module")
def made(folder: Path) -> Callable[..., Path]:
    """Returns the directory of a run of some pipelines, made at its first use."""

    def one(*pipelines: str, limit: int | None = None, tasks: Sequence[str] = ("mills",)) -> Path:
        out = folder / "-".join([*(name[:5] for name in pipelines), str(limit), *tasks])
        if not out.exists():
            run(
                pipelines, tasks, config=[folder / "mine.yaml"], limit=limit, out=out,
                workers=0, cached=False,
            )  # fmt: skip
        return out

    return one


def test_scores_and_differences(made: Callable[..., Path]) -> None:
    """Scores are the run's own; wins, ties and losses are counted, and the sign is right."""
    found = compare([made("right", "wrong")], draws=FEW)
    [board] = found.boards
    right, wrong = board.entries
    assert board.baseline == "right"
    assert right.scores["exact_match"].value == 75.0
    assert wrong.scores["exact_match"].value == 25.0
    assert right.scores["exact_match"].difference is None
    apart = wrong.scores["exact_match"].difference
    assert apart is not None
    assert (apart.value, apart.wins, apart.ties, apart.losses) == (-50.0, 4, 0, 12)
    assert apart.low < -50 < apart.high
    assert 0 < apart.p_randomisation < 0.15


def test_the_baseline_can_be_chosen(made: Callable[..., Path]) -> None:
    """Against another baseline the difference changes its sign; an unknown one is named."""
    runs = [made("right", "wrong")]
    [board] = compare(runs, baseline="wrong", draws=FEW).boards
    apart = board.entries[0].scores["f1"].difference
    assert apart is not None
    assert apart.value == 50.0
    with pytest.raises(UserError, match="'wrnog'; did you mean 'wrong'"):
        compare(runs, baseline="wrnog", draws=FEW)


def test_pipelines_of_one_name(made: Callable[..., Path]) -> None:
    """Two runs of one pipeline are told apart by their directories."""
    one, other = made("right"), made("right", "wrong")
    [board] = compare([one, other], draws=FEW).boards
    labels = [entry.label for entry in board.entries]
    assert labels == [f"{one.name}:right", f"{other.name}:right", "wrong"]
    same = board.entries[1].scores["f1"].difference
    assert same is not None
    assert (same.value, same.p_bootstrap, same.p_randomisation, same.ties) == (0, 1, 1, 16)


def test_other_examples_are_refused(made: Callable[..., Path]) -> None:
    """Runs over other examples are refused with their numbers, unless the common ones will do."""
    runs = [made("right"), made("wrong", limit=5)]
    with pytest.raises(
        UserError, match=r"5 in common:\n  right: 11 more \(q5, q6, q7, …\)\n.*--common"
    ):
        compare(runs, draws=FEW)
    [board] = compare(runs, common=True, draws=FEW).boards
    assert [entry.examples for entry in board.entries] == [5, 5]
    assert board.entries[0].scores["exact_match"].value == 60.0


def test_failures_count(made: Callable[..., Path]) -> None:
    """A failed example scores as an empty prediction, and is told beside the score."""
    [board] = compare([made("right", "breaks")], draws=FEW).boards
    right, breaks = board.entries
    assert (right.failures, breaks.failures) == (0, 2)
    assert breaks.scores["f1"].value == pytest.approx(100 * 10 / 16)


def test_tasks(made: Callable[..., Path]) -> None:
    """Each task has its board; one may be asked for; one that no run has is named."""
    runs = [made("right", "wrong", tasks=("mills", "others"))]
    assert [board.task for board in compare(runs, draws=FEW).boards] == ["mills", "others"]
    [board] = compare(runs, tasks=["others"], draws=FEW).boards
    assert list(board.metrics) == ["f1"]
    with pytest.raises(UserError, match="no task 'mils'; did you mean 'mills'"):
        compare(runs, tasks=["mils"], draws=FEW)


def test_warnings(made: Callable[..., Path]) -> None:
    """Other truncation, other data and other metrics are told with the table."""
    one, other = made("right"), made("wrong")
    metrics, manifest, statistics = (
        other / "wrong/mills/metrics.json", other / "manifest.json",
        other / "wrong/mills/statistics.jsonl",
    )  # fmt: skip
    kept = {path: path.read_text() for path in (metrics, manifest, statistics)}
    metrics.write_text(kept[metrics].replace("squad-v1", "squad-v9"))
    told: Any = json.loads(kept[manifest])
    told["jobs"][0]["signature"]["data"] = "0" * 64
    manifest.write_text(json.dumps(told))
    statistics.write_text(kept[statistics].replace('"cut": 39', '"cut": 3'))
    reseal(metrics.parent)
    try:
        [board] = compare([one, other], draws=FEW).boards
    finally:
        for path, text in kept.items():
            path.write_text(text)
        reseal(metrics.parent)
    said = "\n".join(board.warnings)
    assert "different data" in said
    assert "truncation differs" in said
    assert "f1 was not computed alike" in said
    assert "squad-v9" in said


def test_formats(made: Callable[..., Path]) -> None:
    """CSV and JSON have every number; Markdown and LaTeX escape names."""
    path = made("right", "long_name_with_$pecial&characters")
    rows = list(csv.DictReader(io.StringIO(_printed(path, "csv"))))
    assert [(row["label"], row["score"]) for row in rows][:2] == [
        ("right", "f1"),
        ("right", "exact_match"),
    ]
    assert float(rows[0]["value"]) == 75.0
    assert rows[2]["wins"] == "4"
    boards = json.loads(_printed(path, "json"))["boards"]
    assert boards[0]["entries"][0]["scores"]["f1"]["value"] == 75.0
    assert r"long\_name\_with\_\$pecial\&characters" in _printed(path, "latex")
    assert "| right | 16 | 0 | 75.00 [" in _printed(path, "markdown")
    assert "against right" in _printed(path, "table")


def _printed(path: Path, form: str) -> str:
    return leporello("compare", path, "--format", form, "--samples", "200").stdout


def test_a_ladder(made: Callable[..., Path], folder: Path) -> None:
    """Pipelines that differ in an oracle alone are told with what each rung is worth."""
    rungs = "{class: TfIdf, k: 1},{class: OracleAnswer, k: 1},{class: Random, k: 1}"
    run(
        ["right"], ["mills"], config=[folder / "mine.yaml"], out=folder / "ladder", workers=0,
        cached=False, overrides=[f"retriever={rungs}"],
    )  # fmt: skip
    found = compare([folder / "ladder"], draws=FEW)
    [ladder] = found.boards[0].ladders
    name = "right@retriever="
    assert ladder.pipelines == (f"{name}TfIdf",)
    assert ladder.rungs == (("OracleAnswer", f"{name}OracleAnswer"), ("Random", f"{name}Random"))
    [first, _] = [table for table in tables_of(found) if table.title.startswith("Headroom")]
    assert first.rows == (("OracleAnswer", "75.00 (+0.00)"), ("Random", "75.00 (+0.00)"))
    assert compare([made("right", "wrong")], draws=FEW).boards[0].ladders == ()


@pytest.mark.parametrize(
    ("path", "told"), [("nowhere", "is not a run"), ("twice", "is given twice")]
)
def test_mistakes(path: str, told: str, made: Callable[..., Path]) -> None:
    """A directory without a run, and one given twice, are told in a line."""
    runs = [made("right"), made("right")] if path == "twice" else [Path(path)]
    assert told in leporello("compare", *runs, status=2).stderr


def test_a_run_that_has_not_begun(made: Callable[..., Path], tmp_path: Path) -> None:
    """A run of which nothing is finished is told, not compared."""
    (tmp_path / "manifest.json").write_text((made("right") / "manifest.json").read_text())
    with pytest.raises(UserError, match="nothing of this run is finished"):
        compare([made("right"), tmp_path], draws=FEW)
