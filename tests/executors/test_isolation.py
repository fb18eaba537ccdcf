"""Stages that raise, hang, die or return nonsense: only their example fails."""

import json
import shutil
import time
from pathlib import Path

import pytest
from command_line import HERE, leporello
from misbehaving import Project
from results import reseal

from leporello.api import UserError
from leporello.engine.limits import Limits
from leporello.testing.text_contract import killed_after

QUESTIONS = ("reader: fail", "two", "retriever: raise", "reader: fail", "five") * 20


def test_an_error_of_a_stage_fails_only_its_example(tmp_path: Path) -> None:
    project = Project(tmp_path, "one", "two", "retriever: raise", "reader: fail", "end")
    run = project.run(workers=2)
    assert project.failures() == {
        "q2": ("retriever", "LookupError: a broken question"),
        "q3": ("reader", "RuntimeError: cannot read this"),
    }
    assert {p.id: p.prediction for p in run.predictions("mine", "rows")} == {
        "q0": "one!", "q1": "two!", "q4": "end!"
    }  # fmt: skip
    for row in project.rows("failures.jsonl"):
        trace = (project.out / "mine" / "rows" / row["traceback"]).read_text()
        assert row["error"] in trace
        assert "plug.py" in trace


def test_only_an_example_that_takes_too_long_fails(tmp_path: Path) -> None:
    questions = ("one", "retriever: hang", "combiner: hang", "reader: hang", "five")
    project = Project(tmp_path, *questions)
    started = time.monotonic()
    project.run(limits=Limits(example_timeout=0.3))
    assert time.monotonic() - started < 20
    failures = project.failures()
    assert {name: (stage, text.split(" ")[0]) for name, (stage, text) in failures.items()} == {
        "q1": ("retriever", "TimeoutError:"),
        "q2": ("combiner", "TimeoutError:"),
        "q3": ("reader", "TimeoutError:"),
    }


def test_the_next_run_retries_failed_examples(tmp_path: Path) -> None:
    project = Project(tmp_path, "one", "reader: fail", "three", "retriever: raise")
    assert project.run().failures == 2
    before = project.logged()
    (tmp_path / "repaired").touch()
    run = project.run()
    assert run.failures == 1
    assert [p.id for p in run.predictions("mine", "rows")] == ["q0", "q1", "q2"]
    repeated = project.logged() - before
    assert {entry for entry in repeated if entry.startswith("read")} == {"read reader: fail"}
    assert project.run().failures == 1


def test_a_retry_that_is_killed_anywhere_is_resumed(tmp_path: Path) -> None:
    project = Project(tmp_path, *QUESTIONS)
    project.run()
    before = shutil.copytree(project.out, tmp_path / "before")
    (tmp_path / "repaired").touch()
    project.run()
    files = [project.out / "mine" / "rows" / f"{n}.jsonl" for n in ("predictions", "failures")]
    expected = [file.read_bytes() for file in files]
    for commits in range(1, 999, 9):
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


def test_a_sweep_chunks_each_document_once(tmp_path: Path) -> None:
    for workers in (0, 1):
        folder = tmp_path / str(workers)
        folder.mkdir()
        project = Project(folder, "one", "two", "three", "four")
        project.run(workers=workers, overrides=["retriever.k=1,2,3"])
        logged = project.logged()
        assert {entry: n for entry, n in logged.items() if entry.startswith("chunk")} == {
            "chunk d0": 1, "chunk d1": 1
        }  # fmt: skip
        assert [logged[f"retrieve {k}"] for k in (1, 2, 3)] == [2, 2, 2]


def test_data_that_changes_during_a_run_is_reported(tmp_path: Path) -> None:
    project = Project(tmp_path, "one", "two")
    text = (tmp_path / "plug.py").read_text()
    rows = tmp_path / "rows.jsonl"
    (tmp_path / "plug.py").write_text(
        text.replace(
            "for read in inputs:",
            f"Path({str(rows)!r}).open('a').write(' ')\n        for read in inputs:",
            1,
        )
    )
    with pytest.raises(UserError, match="changed while the run was reading"):
        project.run()
