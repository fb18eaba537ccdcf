"""Tests of submissions to leaderboards, and of scoring a file of predictions."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from command_line import GOLDEN, write_files

from leporello.analysis.export.submission import leaderboard_named, submission_csv, submit
from leporello.api import run
from leporello.core.errors import UserError

SUITES = {name: leaderboard_named(name) for name in ("scrolls", "zero_scrolls")}
SCORES = {
    name: {task: suite.columns[task].score for task in board.tasks}
    for name, (suite, board) in SUITES.items()
}
INPUTS = json.loads((GOLDEN / "submission_inputs.json").read_text(encoding="utf-8"))
TEXTS: dict[str, str] = INPUTS["predictions"]


def predictions(benchmark: str, first: Mapping[str, str] = TEXTS) -> dict[str, Mapping[str, str]]:
    """Returns predictions for all tasks: `first` for the first, and one for each of the others."""
    tasks = [*SCORES[benchmark]]
    return {tasks[0]: first, **{task: {"x1": "ok"} for task in tasks[1:]}}


@pytest.mark.parametrize("benchmark", SCORES)
def test_a_submission_equals_the_official_one(benchmark: str) -> None:
    """It equals the file of the authors' script byte for byte, for any order of the tasks."""
    by_task = predictions(benchmark)
    expected = (GOLDEN / f"submission_{benchmark}.csv").read_bytes()
    assert submission_csv(by_task, benchmark, by_task) == expected
    assert submission_csv(dict(reversed(by_task.items())), benchmark, by_task) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!@#$%^&*()", "as a missing value, in 2 (good, !@#$%^&*())"),
        ("a\rb", "the scripts begin a new row at a carriage return (\\r), in 2"),
        ("a\0b", "the scripts end a text at a NUL character, in 2"),
    ],
)
def test_texts_that_the_official_script_changes_are_refused(text: str, message: str) -> None:
    by_task = predictions("scrolls", {"good": text, text: "good"})
    with pytest.raises(UserError) as error:
        submission_csv(by_task, "scrolls", by_task)
    assert message in str(error.value)


def test_all_faults_are_reported_together() -> None:
    by_task = predictions("zero_scrolls", {"a": "x", "c": "y"})
    ids = {task: ["x1"] for task in SCORES["zero_scrolls"]}
    ids |= {"gov_report": [*"abdefghi"], "qasper": ["x2"]}
    with pytest.raises(UserError) as error:
        submission_csv(by_task, "zero_scrolls", ids)
    assert str(error.value).splitlines() == [
        "no submission to zero_scrolls:",
        "gov_report: 7 ids are missing (b, d, e, f, g, …)",
        "gov_report: 1 ids are redundant (c)",
        "qasper: 1 ids are missing (x2)",
        "qasper: 1 ids are redundant (x1)",
    ]


def test_a_benchmark_without_submissions_is_reported() -> None:
    match = "'muld' does not accept submissions; allowed: scrolls, zero_scrolls"
    with pytest.raises(UserError, match=match):
        submission_csv({}, "muld", {})


ECHO = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Echo:
    fail: str = ""

    def combine(self, example, hits):
        if example.question == self.fail:
            raise ValueError("as configured")
        return example.question
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """All tasks of SCROLLS, three examples each, and pipelines that echo questions."""
    for task in SCORES["scrolls"]:
        gold = {"references": [f"{task} 1"]}
        rows = [
            {"id": f"{task}-{n}", "document": "x", "question": f"{task} {n}", **gold}
            for n in range(3)
        ]
        write_files(tmp_path, {f"{task}.test.jsonl": rows})
    echo = {"reader": "Lead", "combiner": "./echo.py:Echo"}
    fails = {"reader": "Lead", "combiner": {"class": "./echo.py:Echo", "fail": "qasper 1"}}
    rows_of = {"class": "JsonLines", "split": "test"}
    settings = {
        "pipelines": {"echo": echo, "fails": fails, "scrolls-bart-256": echo},
        "tasks": {
            f"scrolls/{name}": {**rows_of, "path": f"{name}.{{split}}.jsonl", "metrics": [metric]}
            for name, metric in SCORES["scrolls"].items()
        },
    }
    write_files(tmp_path, {"echo.py": ECHO, "mine.yaml": json.dumps(settings)})
    return tmp_path / "mine.yaml"


TASKS = [f"scrolls/{task}" for task in SCORES["scrolls"]]


def test_runs_are_submitted(config: Path, tmp_path: Path) -> None:
    run(["fails"], TASKS[:3], config=[config], out=tmp_path / "one", workers=0)
    run(["echo"], TASKS[3:], config=[config], out=tmp_path / "two", workers=0)
    submission = submit([tmp_path], "scrolls", tmp_path)
    assert submission.file == tmp_path / "scrolls_predictions.csv"
    assert set(submission.rows.values()) == {3}
    assert submission.failed == {"qasper": ("qasper-1",)}
    assert set(submission.splits.values()) == {"test"}
    lines = submission.file.read_text(encoding="utf-8").splitlines()
    assert lines[:6] == [
        "Task,ID,Prediction",
        "qmsum,qmsum-0,qmsum 0",
        "qmsum,qmsum-1,qmsum 1",
        "qmsum,qmsum-2,qmsum 2",
        "qasper,qasper-0,qasper 0",
        "qasper,qasper-1,",
    ]
    assert len(lines) == 1 + 7 * 3


def test_an_incomplete_benchmark_is_not_submitted(config: Path, tmp_path: Path) -> None:
    run(["echo"], TASKS[1:], config=[config], out=tmp_path / "one", workers=0, limit=2)
    with pytest.raises(UserError, match=r"1 tasks are missing \(qmsum\) in these runs"):
        submit([tmp_path / "one"], "scrolls", tmp_path / "s.csv")
    run(["echo"], TASKS[:1], config=[config], out=tmp_path / "two", workers=0)
    with pytest.raises(UserError, match=r"qasper: 1 ids are missing \(qasper-2\)"):
        submit([tmp_path / "one", tmp_path / "two"], "scrolls", tmp_path / "s.csv")
    assert not (tmp_path / "s.csv").exists()


def test_the_pipeline_must_be_named_if_there_are_two(config: Path, tmp_path: Path) -> None:
    """A row of the suite names a pipeline for each task."""
    run(["fails", "scrolls-bart-256"], TASKS, config=[config], out=tmp_path / "out", workers=0)
    with pytest.raises(UserError, match=r"scrolls/qmsum was run twice: fails in .*--pipeline"):
        submit([tmp_path / "out"], "scrolls", tmp_path / "s.csv")
    submission = submit(
        [tmp_path / "out"], "scrolls", tmp_path / "made" / "s.csv", pipeline="bart-256"
    )
    assert submission.file.exists()
    assert submission.failed == {}
    with pytest.raises(UserError, match=r"missing .* in these runs of pipeline 'ohce'"):
        submit([tmp_path / "out"], "scrolls", tmp_path / "s.csv", pipeline="ohce")
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    with pytest.raises(UserError, match=r"run twice: [^;]*$"):
        submit([tmp_path], "scrolls", tmp_path / "s.csv", pipeline="bart-256")


def test_an_unfinished_run_is_reported(config: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(["echo"], TASKS, config=[config], out=out, workers=0)
    (out / "echo" / "scrolls" / "qasper" / "predictions.jsonl").unlink()
    with pytest.raises(UserError, match="echo on scrolls/qasper is not finished; complete the run"):
        submit([out], "scrolls", tmp_path / "s.csv")


def test_unusable_gold_is_a_failure(tmp_path: Path) -> None:
    rows = [{"id": n, "document": "x", "references": [gold]} for n, gold in ("a7", "bA", "cB")]
    write_files(tmp_path, {"rows.jsonl": rows})
    path = tmp_path / "mine.yaml"
    path.write_text("tasks: {mine: {class: JsonLines, path: rows.jsonl, metrics: [option_letter]}}")
    run_result = run(["lead"], ["mine"], config=[path], out=tmp_path / "out", workers=0)
    [result] = run_result.results
    assert (result.failures, result.scores) == (1, {"option_letter": 0})
    failures = (tmp_path / "out" / "lead" / "mine" / "failures.jsonl").read_text("utf-8")
    assert "GoldError: example 'a': the reference '7' has no letter" in failures
