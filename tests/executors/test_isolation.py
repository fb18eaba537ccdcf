"""Stages that raise, hang, die or return nonsense: their example fails, and nothing else."""

from __future__ import annotations

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
from leporello.testing.kills import killed_after

QUESTIONS = ("reader: fail", "two", "retriever: raise", "reader: fail", "five") * 20


def test_what_a_stage_raises_fails_its_example_alone(tmp_path: Path) -> None:
    """In other processes too: the stage, the error and a file with the traceback."""
    project = Project(tmp_path, "one", "two", "retriever: raise", "reader: fail", "end")
    done = project.run(workers=2)
    assert project.failures() == {
        "q2": ("retriever", "LookupError: a broken question"),
        "q3": ("reader", "RuntimeError: cannot read this"),
    }
    assert {p.id: p.prediction for p in done.predictions("mine", "rows")} == {
        "q0": "one!", "q1": "two!", "q4": "end!"
    }  # fmt: skip
    for row in project.rows("failures.jsonl"):
        trace = (project.out / "mine" / "rows" / row["traceback"]).read_text()
        assert row["error"] in trace
        assert "plug.py" in trace


def test_an_example_that_takes_too_long_fails_alone(tmp_path: Path) -> None:
    """Selecting, combining and reading are limited, by the time of the example itself."""
    asked = ("one", "retriever: hang", "combiner: hang", "reader: hang", "five")
    project = Project(tmp_path, *asked)
    started = time.monotonic()
    project.run(limits=Limits(example_timeout=0.3))
    assert time.monotonic() - started < 20
    told = {id_: (stage, error.split(" ")[0]) for id_, (stage, error) in project.failures().items()}
    assert told == {
        "q1": ("retriever", "TimeoutError:"),
        "q2": ("combiner", "TimeoutError:"),
        "q3": ("reader", "TimeoutError:"),
    }


def test_a_process_that_cannot_be_interrupted_is_killed(tmp_path: Path) -> None:
    """Code that never comes back to the interpreter is ended from outside, and not tried again."""
    project = Project(tmp_path, "one", "retriever: hang in C", "three")
    plug_in = tmp_path / "plug.py"
    sooner = "from leporello.engine import failures\nfailures._GRACE = 1.0\n"
    plug_in.write_text(plug_in.read_text() + sooner)
    project.run(workers=1, limits=Limits(example_timeout=0.2))
    assert project.failures() == {
        "q1": ("retriever", "took far longer than its time, and could not be interrupted")
    }
    assert project.outcomes() == ["died", "died", "finished"]  # with the others, then alone


def test_failed_examples_are_tried_again_by_the_next_run(tmp_path: Path) -> None:
    """They alone; once they are answered, nothing is left to do."""
    project = Project(tmp_path, "one", "reader: fail", "three", "retriever: raise")
    assert project.run().failures == 2
    before = project.logged()
    (tmp_path / "repaired").touch()
    done = project.run()
    assert done.failures == 1
    assert [p.id for p in done.predictions("mine", "rows")] == ["q0", "q1", "q2"]
    again = project.logged() - before
    assert {what for what in again if what.startswith("read")} == {"read reader: fail"}
    assert project.run().failures == 1


def test_a_retry_that_is_cut_anywhere_goes_on(tmp_path: Path) -> None:
    """The pass that tries failures again is resumed like any other."""
    project = Project(tmp_path, *QUESTIONS)
    project.run()
    before = shutil.copytree(project.out, tmp_path / "before")
    (tmp_path / "repaired").touch()
    project.run()
    files = [project.out / "mine" / "rows" / f"{n}.jsonl" for n in ("predictions", "failures")]
    whole = [file.read_bytes() for file in files]
    for commits in range(1, 999, 9):
        shutil.rmtree(project.out)
        shutil.copytree(before, project.out)
        with killed_after(commits) as killed:
            project.run()
        if not killed:
            return
        project.run()
        assert [file.read_bytes() for file in files] == whole


@pytest.mark.parametrize(("bound", "stopped"), [("1", True), ("20%", True), ("0.9", False)])
def test_too_many_failures_end_the_run(tmp_path: Path, bound: str, stopped: bool) -> None:
    """A number or a share; what is finished is kept, and the next run goes on."""
    project = Project(tmp_path, *QUESTIONS)
    arguments = ("run", "mine", *HERE, "--config", project.config, "--out", project.out)
    done = leporello(*arguments, "--max-failures", bound, status=1)
    told = "ended early: " in done.stderr and "--max-failures" in done.stderr
    assert told is stopped
    finished = 100 if not stopped else len(project.failures())
    assert (len(project.failures()) < 60) is stopped
    assert finished
    assert "examples failed:" in done.stdout
    assert "at the retriever (LookupError)" in done.stdout


@pytest.mark.parametrize("bound", ["many", "-1", "1.5", "200%"])
def test_a_bound_that_is_neither_number_nor_share_is_refused(tmp_path: Path, bound: str) -> None:
    """The message says what it may be."""
    done = leporello("run", "lead", f"--max-failures={bound}", status=2, folder=tmp_path)
    assert "must be a number of examples, as 10, or a share, as 0.05 or 5%" in done.stderr


def test_verify_finds_what_comes_out_otherwise(tmp_path: Path) -> None:
    """A sample is run again from nothing kept; differences are told, and the status is 1."""
    project = Project(tmp_path, "one", "two", "three")
    done = project.run(verify=True)
    assert ([v.examples for v in done.verified], done.differing) == ([1], ())
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
    shown = leporello(*line, "--verify", status=1)
    assert "not the same again: q" in shown.stdout


def test_a_sweep_divides_each_document_once(tmp_path: Path) -> None:
    """All points run over one stream of documents, in one process or beside it."""
    for workers in (0, 1):
        folder = tmp_path / str(workers)
        folder.mkdir()
        project = Project(folder, "one", "two", "three", "four")
        project.run(workers=workers, overrides=["retriever.k=1,2,3"])
        logged = project.logged()
        assert {what: n for what, n in logged.items() if what.startswith("chunk")} == {
            "chunk d0": 1, "chunk d1": 1
        }  # fmt: skip
        assert [logged[f"retrieve {k}"] for k in (1, 2, 3)] == [2, 2, 2]


def test_data_that_changes_under_a_run_is_noticed(tmp_path: Path) -> None:
    """A run whose data are another thing at its end than at its beginning says so."""
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
