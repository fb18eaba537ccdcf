"""Plug-ins that kill their process: only their example fails."""

import json
from pathlib import Path

import pytest
from misbehaving import PLUG_IN, Project

from leporello.api import UserError

KILLED = "its process was killed by signal 9 (9 is often lack of memory) each time"
LEFT = "its process ended with status 0 each time"


@pytest.mark.parametrize(
    ("question", "stage", "message", "deaths"),
    [
        # Three times with the other question on its document, then alone.
        pytest.param("retriever: kill", "retriever", KILLED, 4, marks=pytest.mark.slow),
        pytest.param("combiner: exit", "combiner", LEFT, 3, marks=pytest.mark.slow),
        ("reader: kill", "reader", KILLED, 5),  # three in a batch, then each of two alone
    ],
)
def test_a_question_that_kills_its_worker_fails_alone(
    tmp_path: Path, question: str, stage: str, message: str, deaths: int
) -> None:
    """One failure, with the stage; other examples are answered as without the death.

    The pipeline has a plug-in, so the run uses a worker in spite of 0 workers.
    """
    project = Project(tmp_path, "one", "two", "three", question, "five", "six")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LEPORELLO_UNSUPERVISED")
        project.run()
    assert project.failures() == {"q3": (stage, message)}
    project.holds_all_others()
    assert project.outcomes() == ["died"] * deaths + ["finished"]
    assert not list((tmp_path / "out" / "attempts").rglob("*.jsonl"))


def test_an_example_that_exceeds_the_memory_of_a_worker_fails(tmp_path: Path) -> None:
    """If Python raises MemoryError, the worker continues."""
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


def test_only_a_document_that_kills_when_it_is_opened_fails(tmp_path: Path) -> None:
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
    run = project.run(workers=1)
    message = f"rows.jsonl:{{}}: document_path: {KILLED}"
    assert project.failures() == {
        "deadly-0": ("task", message.format(3)), "deadly-1": ("task", message.format(4))
    }  # fmt: skip
    answered = [prediction.id for prediction in run.predictions("mine", "rows")]
    assert answered == ["one-0", "one-1", "three-0", "three-1"]
    assert project.outcomes() == ["died"] * 3 + ["finished"]


def test_a_plug_in_task_reports_the_document_that_kills(tmp_path: Path) -> None:
    """If it can yield examples without opening documents, only the examples fail."""
    project = Project(tmp_path, "one")
    with pytest.raises(UserError, match="task 'deadly': document 3 cannot be opened: its process"):
        project.run(workers=1, tasks=["deadly"])
    run = project.run("other", workers=1, tasks=["closing"])
    assert [(f.example_id, f.stage) for f in run.failed("mine", "closing")] == [("q2", "task")]
    assert len([*run.predictions("mine", "closing")]) == 3
