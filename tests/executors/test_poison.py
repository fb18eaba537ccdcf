"""Plug-ins that take their process with them: one example fails, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from misbehaving import PLUG_IN, Project

from leporello.api import UserError
from leporello.engine.limits import Limits

KILLED = "its process was killed by signal 9 (9 is often lack of memory) each time"
LEFT = "its process ended with status 0 each time"


@pytest.mark.parametrize(
    ("question", "stage", "told", "deaths"),
    [
        # Three times with the other question of its document, then alone.
        pytest.param("retriever: kill", "retriever", KILLED, 4, marks=pytest.mark.slow),
        pytest.param("combiner: exit", "combiner", LEFT, 3, marks=pytest.mark.slow),
        ("reader: kill", "reader", KILLED, 5),  # three with others in a window, each of two alone
    ],
)
def test_a_question_that_kills_its_worker_fails_alone(
    tmp_path: Path, question: str, stage: str, told: str, deaths: int
) -> None:
    """One failure, with the stage; all others are as in a run where nothing dies.

    Asked for 0 workers, a pipeline with a class of somebody else has one all the same.
    """
    project = Project(tmp_path, "one", "two", "three", question, "five", "six")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEPORELLO_UNSUPERVISED")
        project.run()
    assert project.failures() == {"q3": (stage, told)}
    project.holds_all_others()
    assert project.outcomes() == ["died"] * deaths + ["finished"]
    assert not list((tmp_path / "out" / "attempts").rglob("*.jsonl"))


@pytest.mark.slow
def test_a_read_that_kills_among_reads_under_way_at_once_fails_alone(tmp_path: Path) -> None:
    """Where reads go out one by one, over several shards, the guilty one is found all the same."""
    project = Project(tmp_path, "1", "2", "3", "reader: kill", "5", "6", reader="Sliding")
    project.run(workers=1, limits=Limits(shard_examples=2))
    assert project.failures() == {"q3": ("reader", KILLED)}
    project.holds_all_others()


def test_more_memory_than_a_worker_may_have_fails_its_example(tmp_path: Path) -> None:
    """Where Python notices, the worker lives on."""
    project = Project(tmp_path, "one", "reader: eat", "three", "four")
    project.run(workers=1, overrides=["placement.worker_memory=4GiB"])
    assert project.failures() == {"q1": ("reader", "MemoryError: ")}
    assert project.outcomes() == ["finished"]
    project.holds_all_others()


LOADER = """
import os, signal
from pathlib import Path
import leporello.loaders, leporello.tasks.json_lines as module

before = module.load

def load(path, *others):
    if path.name == "deadly.txt":
        os.kill(os.getpid(), signal.SIGKILL)
    return before(path, *others)

module.load = load
"""


def test_a_document_that_kills_whoever_opens_it_fails_alone(tmp_path: Path) -> None:
    """Its questions fail at the task; those on the documents beside it are answered."""
    project = Project(tmp_path)
    (tmp_path / "plug.py").write_text(PLUG_IN + LOADER)
    for name in ("one", "deadly", "three"):
        (tmp_path / f"{name}.txt").write_text(f"Words of {name}. Others.")
    rows = [
        {"id": f"{name}-{n}", "document_path": f"{name}.txt", "question": "who?"}
        for name in ("one", "deadly", "three")
        for n in range(2)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = project.run(workers=1)
    told = f"rows.jsonl:{{}}: document_path: {KILLED}"
    assert project.failures() == {
        "deadly-0": ("task", told.format(3)), "deadly-1": ("task", told.format(4))
    }  # fmt: skip
    found = [prediction.id for prediction in done.predictions("mine", "rows")]
    assert found == ["one-0", "one-1", "three-0", "three-1"]
    assert project.outcomes() == ["died"] * 3 + ["finished"]


def test_a_task_of_ones_own_whose_document_kills_says_which(tmp_path: Path) -> None:
    """Unless it can tell of examples without opening their documents."""
    project = Project(tmp_path, "one")
    with pytest.raises(UserError, match="task 'deadly': document 3 cannot be opened: its process"):
        project.run(workers=1, tasks=["deadly"])
    done = project.run("other", workers=1, tasks=["closing"])
    assert [(f.example_id, f.stage) for f in done.failed("mine", "closing")] == [("q2", "task")]
    assert len([*done.predictions("mine", "closing")]) == 3
