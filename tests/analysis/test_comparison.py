"""Tests of comparisons of finished runs, from Python and the command line."""

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import leporello, write_files
from row_files import reseal

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
from leporello import Output
from leporello.readers import Lead

class Broken(Lead):
    def read(self, inputs):
        if any("3" in read.question for read in inputs):
            raise ValueError("three")
        return [Output("the mill") for _ in inputs]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A config with four pipelines and two tasks of a few questions."""
    base = tmp_path_factory.mktemp("compared")
    rows = [
        {"id": f"q{number}", "document_id": f"d{number // 4}",
         "document": f"Story {number // 4}: he left them a mill and a cat.",
         "question": f"What, {number}?", "references": ["the mill" if number % 4 else "a cat"]}
        for number in range(16)
    ]  # fmt: skip
    files = {"mine.yaml": CONFIG, "broken.py": BROKEN}
    write_files(base, {**files, "mills.jsonl": rows, "others.jsonl": rows})
    return base


@pytest.fixture(scope="module")
def run_of(folder: Path) -> Callable[..., Path]:
    """Function that returns the directory of a run of pipelines, and starts the run once."""

    def cached(
        *pipelines: str, limit: int | None = None, tasks: Sequence[str] = ("mills",)
    ) -> Path:
        out = folder / "-".join([*(name[:5] for name in pipelines), str(limit), *tasks])
        if not out.exists():
            run(
                pipelines, tasks, config=[folder / "mine.yaml"], limit=limit, out=out,
                workers=0, cached=False,
            )  # fmt: skip
        return out

    return cached


def test_scores_and_differences(run_of: Callable[..., Path]) -> None:
    """Scores equal the run's scores; wins, ties, losses and the sign are correct."""
    comparison = compare([run_of("right", "wrong")], draws=FEW)
    [board] = comparison.boards
    right, wrong = board.entries
    assert board.baseline == "right"
    assert right.scores["exact_match"].value == 75.0
    assert wrong.scores["exact_match"].value == 25.0
    assert right.scores["exact_match"].difference is None
    difference = wrong.scores["exact_match"].difference
    assert difference is not None
    counts = (difference.wins, difference.ties, difference.losses)
    assert (difference.value, *counts) == (-50.0, 4, 0, 12)
    assert difference.low < -50 < difference.high
    assert 0 < difference.p_randomisation < 0.15


def test_the_baseline_can_be_chosen(run_of: Callable[..., Path]) -> None:
    """With another baseline the difference changes its sign; unknown baselines are reported."""
    runs = [run_of("right", "wrong")]
    [board] = compare(runs, baseline="wrong", draws=FEW).boards
    difference = board.entries[0].scores["f1"].difference
    assert difference is not None
    assert difference.value == 50.0
    with pytest.raises(UserError, match="'wrnog'; did you mean 'wrong'"):
        compare(runs, baseline="wrnog", draws=FEW)


def test_one_document_has_no_interval(run_of: Callable[..., Path]) -> None:
    """If documents are drawn, scores of one document have no interval, those of two have one."""
    draws = Draws(samples=400, by_document=True)
    for limit, documents in ((4, 1), (8, 2)):
        [board] = compare([run_of("right", "wrong", limit=limit)], draws=draws).boards
        right, wrong = board.entries
        assert (right.scores["f1"].interval is None) == (documents == 1)
        assert (wrong.scores["f1"].difference is None) == (documents == 1)
        assert ("of one document" in "".join(board.warnings)) == (documents == 1)


def test_pipelines_of_one_name(run_of: Callable[..., Path]) -> None:
    """Labels of two runs of one pipeline include the directories."""
    first, second = run_of("right"), run_of("right", "wrong")
    [board] = compare([first, second], draws=FEW).boards
    labels = [entry.label for entry in board.entries]
    assert labels == [f"{first.name}:right", f"{second.name}:right", "wrong"]
    same = board.entries[1].scores["f1"].difference
    assert same is not None
    assert (same.value, same.p_bootstrap, same.p_randomisation, same.ties) == (0, 1, 1, 16)


def test_other_examples_are_refused(run_of: Callable[..., Path]) -> None:
    """Runs over different examples are refused, unless only common examples are compared."""
    runs = [run_of("right"), run_of("wrong", limit=5)]
    with pytest.raises(
        UserError, match=r"5 in common:\n  right: 11 more \(q5, q6, q7, q8, q9, …\)\n.*--common"
    ):
        compare(runs, draws=FEW)
    [board] = compare(runs, common=True, draws=FEW).boards
    assert [entry.examples for entry in board.entries] == [5, 5]
    assert board.entries[0].scores["exact_match"].value == 60.0


def test_failures_count(run_of: Callable[..., Path]) -> None:
    """A failed example scores as an empty prediction, and is counted as a failure."""
    [board] = compare([run_of("right", "breaks")], draws=FEW).boards
    right, breaks = board.entries
    assert (right.failures, breaks.failures) == (0, 2)
    assert breaks.scores["f1"].value == pytest.approx(100 * 10 / 16)


def test_tasks(run_of: Callable[..., Path]) -> None:
    """Each task has a board; boards can be filtered by task; unknown tasks are reported."""
    runs = [run_of("right", "wrong", tasks=("mills", "others"))]
    assert [board.task for board in compare(runs, draws=FEW).boards] == ["mills", "others"]
    [board] = compare(runs, tasks=["others"], draws=FEW).boards
    assert list(board.metrics) == ["f1"]
    with pytest.raises(UserError, match="no task 'mils'; did you mean 'mills'"):
        compare(runs, tasks=["mils"], draws=FEW)


def test_warnings(run_of: Callable[..., Path], tmp_path: Path) -> None:
    """Different truncation, data and metrics trigger warnings."""
    second = shutil.copytree(run_of("wrong"), tmp_path / "changed")
    manifest: Any = json.loads((second / "manifest.json").read_text())
    manifest["jobs"][0]["signature"]["data"] = "0" * 64
    (second / "manifest.json").write_text(json.dumps(manifest))
    for name, old, new in (
        ("metrics.json", "squad-v1", "squad-v9"), ("statistics.jsonl", '"cut": 39', '"cut": 3')
    ):  # fmt: skip
        path = second / "wrong/mills" / name
        path.write_text(path.read_text().replace(old, new))
    reseal(second / "wrong/mills")
    [board] = compare([run_of("right"), second], draws=FEW).boards
    warnings = "\n".join(board.warnings)
    for text in ("different data", "truncation differs", "f1 was not computed alike", "squad-v9"):
        assert text in warnings


def test_formats(run_of: Callable[..., Path]) -> None:
    """CSV and JSON have every number; Markdown and LaTeX escape names."""
    path = run_of("right", "long_name_with_$pecial&characters")
    rows = list(csv.DictReader(io.StringIO(_printed(path, "csv"))))
    assert [row["label"] for row in rows][:2] == ["right", "right"]
    assert [row["score"] for row in rows][:2] == ["f1", "exact_match"]
    assert float(rows[0]["value"]) == 75.0
    assert rows[2]["wins"] == "4"
    boards = json.loads(_printed(path, "json"))["boards"]
    assert boards[0]["entries"][0]["scores"]["f1"]["value"] == 75.0
    assert r"long\_name\_with\_\$pecial\&characters" in _printed(path, "latex")
    assert "| right | 16 | 0 | 75.00 [" in _printed(path, "markdown")
    assert "against right" in _printed(path, "table", "--all")
    first = _printed(path, "table").splitlines()[0]
    assert first.startswith("mills: right has the best f1, 75.00; 25.00 above long_name_with")


def _printed(path: Path, form: str, *options: str) -> str:
    return leporello("compare", path, "--format", form, "--samples", "200", *options).stdout


def test_names_in_csv_are_not_formulas(tmp_path: Path, folder: Path) -> None:
    """The name of a run begins the label of a pipeline, and may be anything."""
    config, outs = [folder / "mine.yaml"], [tmp_path / "=1+2", tmp_path / "b"]
    for out in outs:
        run(["right"], ["mills"], config=config, out=out, workers=0, limit=2)
    printed = leporello("compare", *outs, "--format", "csv").stdout
    assert "'=1+2:right" in printed
    verdict = leporello("compare", *outs, "--samples", "200").stdout.splitlines()[0]
    assert "b:right have the best f1, 50.00; no difference" in verdict


def test_a_ladder(run_of: Callable[..., Path], folder: Path) -> None:
    """Pipelines that differ only in an oracle have a table with the gain of each oracle."""
    rungs = "{class: TfIdf, k: 1},{class: OracleAnswer, k: 1},{class: Random, k: 1}"
    run(
        ["right"], ["mills"], config=[folder / "mine.yaml"], out=folder / "ladder", workers=0,
        cached=False, overrides=[f"retriever={rungs}"],
    )  # fmt: skip
    comparison = compare([folder / "ladder"], draws=FEW)
    [ladder] = comparison.boards[0].ladders
    name = "right@retriever="
    assert ladder.pipelines == (f"{name}TfIdf",)
    assert ladder.rungs == (("OracleAnswer", f"{name}OracleAnswer"), ("Random", f"{name}Random"))
    [first, _] = [table for table in tables_of(comparison) if table.title.startswith("Headroom")]
    assert first.rows == (("OracleAnswer", "75.00 (+0.00)"), ("Random", "75.00 (+0.00)"))
    assert compare([run_of("right", "wrong")], draws=FEW).boards[0].ladders == ()


def test_unusable_directories(run_of: Callable[..., Path], tmp_path: Path) -> None:
    """A directory that is named twice and a run without finished examples are errors."""
    error = leporello("compare", run_of("right"), run_of("right"), status=2).stderr
    assert "is named twice" in error
    (tmp_path / "manifest.json").write_text((run_of("right") / "manifest.json").read_text())
    with pytest.raises(UserError, match="this run has no finished examples"):
        compare([run_of("right"), tmp_path], draws=FEW)
