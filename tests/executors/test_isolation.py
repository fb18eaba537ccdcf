"""Stages that raise, hang, die or return nonsense: only their example fails."""

import json
import shutil
from pathlib import Path

import pytest
from command_line import HERE, leporello
from misbehaving import Project
from results import reseal

from leporello.testing.text_contract import killed_after

QUESTIONS = ("reader: fail", "two", "retriever: raise", "reader: fail", "five") * 20


def test_the_next_run_retries_failed_examples(tmp_path: Path) -> None:
    """Each failure has its stage, its error and a traceback."""
    project = Project(tmp_path, "one", "reader: fail", "three", "retriever: raise")
    project.run()
    assert project.failures() == {
        "q1": ("reader", "RuntimeError: cannot read this"),
        "q3": ("retriever", "LookupError: a broken question"),
    }
    for row in project.rows("failures.jsonl"):
        trace = (project.out / "mine" / "rows" / row["traceback"]).read_text()
        assert row["error"] in trace
        assert "plug.py" in trace
    before = project.logged()
    (tmp_path / "repaired").touch()
    run = project.run()
    assert run.failures == 1
    assert [p.id for p in run.predictions("mine", "rows")] == ["q0", "q1", "q2"]
    assert {*project.logged()[len(before) :]} == {"reader: fail"}
    assert project.run().failures == 1


def test_a_retry_that_is_killed_anywhere_is_resumed(tmp_path: Path) -> None:
    project = Project(tmp_path, *QUESTIONS[:20])
    project.run()
    before = shutil.copytree(project.out, tmp_path / "before")
    (tmp_path / "repaired").touch()
    project.run()
    files = [project.out / "mine" / "rows" / f"{n}.jsonl" for n in ("predictions", "failures")]
    expected = [file.read_bytes() for file in files]
    for commits in range(1, 999, 5):
        shutil.rmtree(project.out)
        shutil.copytree(before, project.out)
        with killed_after(commits) as killed:
            project.run()
        if not killed:
            return
        project.run()
        assert [file.read_bytes() for file in files] == expected


@pytest.mark.parametrize(("bound", "stopped"), [("1", True), ("20%", True), ("0.9", False)])
def test_too_many_failures_end_the_run(tmp_path: Path, bound: str, stopped: bool) -> None:
    project = Project(tmp_path, *QUESTIONS)
    arguments = ("run", "mine", *HERE, "--config", project.config, "--out", project.out)
    process = leporello(*arguments, "--max-failures", bound, status=1)
    is_reported = "ended early: " in process.stderr and "--max-failures" in process.stderr
    assert is_reported is stopped
    finished = 100 if not stopped else len(project.failures())
    assert (len(project.failures()) < 60) is stopped
    assert finished
    assert "examples failed:" in process.stdout
    assert "at the retriever (LookupError)" in process.stdout


@pytest.mark.parametrize("bound", ["many", "-1", "1.5", "200%"])
def test_a_bound_that_is_neither_number_nor_share_is_refused(tmp_path: Path, bound: str) -> None:
    process = leporello("run", "lead", f"--max-failures={bound}", status=2, folder=tmp_path)
    assert "must be a number of examples (10) or a share (0.05 or 5%)" in process.stderr


def test_verify_reports_differences(tmp_path: Path) -> None:
    project = Project(tmp_path, "one", "two", "three")
    run = project.run(verify=True)
    assert ([v.examples for v in run.verified], run.differing) == ([1], ())
    report = project.out / "mine" / "rows" / "verify.json"
    assert json.loads(report.read_text()) == {"examples": 1, "differing": []}
    path = project.out / "mine" / "rows" / "predictions.jsonl"
    path.write_text(path.read_text().replace('!"', '?"'))
    reseal(path.parent)
    [difference, *_] = project.run(verify=True).differing
    assert (difference.field, str(difference.was)[-1], str(difference.now)[-1]) == (
        "prediction", "?", "!"
    )  # fmt: skip
    line = ("run", "mine", *HERE, "--config", project.config, "--out", project.out)
    process = leporello(*line, "--verify", status=1)
    assert "different when repeated: q" in process.stdout
