"""Stages that raise or end their process: only their example fails."""

import resource
import shutil
from pathlib import Path

import pytest
from command_line import HERE, leporello, write_files
from misbehaving import PLUG_IN, Project

from leporello.api import UserError
from leporello.engine.limits import Limits
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
    assert 0 < len(project.failures()) <= 60
    assert (len(project.failures()) < 60) is stopped
    assert "examples failed:" in process.stdout
    assert "at the retriever (LookupError)" in process.stdout


@pytest.mark.parametrize("bound", ["many", "-1", "1.5", "200%"])
def test_a_bound_that_is_neither_number_nor_share_is_refused(tmp_path: Path, bound: str) -> None:
    process = leporello("run", "lead", f"--max-failures={bound}", status=2, folder=tmp_path)
    assert "must be a number of examples (10) or a share (0.05 or 5%)" in process.stderr


STOPPING = """
class Stopping(Deadly):
    def layout(self):
        yield DocumentRows(1, 10, 0)
        mark = HERE / "stopped"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGINT)
        yield DocumentRows(1, 10, 1)
"""


def test_a_signal_between_shards_stops_the_run(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "plug.py").write_text(PLUG_IN + STOPPING)
    with project.config.open("a") as file:
        file.write('  stopping: {class: "./plug.py:Stopping"}\n')
    for stopped, examples in (("interrupted", 1), ("", 2)):
        finished = project.run(tasks=["stopping"], limits=Limits(shard_examples=1))
        assert (finished.stopped, finished.results[0].examples) == (stopped, examples)


def test_a_signal_while_orders_are_made_stops_the_workers(tmp_path: Path) -> None:
    """They end after the current read instead of being killed."""
    project = Project(tmp_path)
    (tmp_path / "plug.py").write_text(PLUG_IN + STOPPING)
    with project.config.open("a") as file:
        file.write('  stopping: {class: "./plug.py:Stopping"}\n')
    finished = project.run(tasks=["stopping"], limits=Limits(shard_examples=1), workers=1)
    assert finished.stopped == "interrupted"
    assert project.outcomes() in (["stopped"], ["finished"])


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


def test_a_read_in_a_slot_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    """After the first death reads run one at a time, so the read that kills is known."""
    project = Project(tmp_path, "one", "two", "reader: kill", "four", "five")
    reader = f"reader.class={tmp_path}/plug.py:Sliding"
    project.run(workers=1, overrides=[reader, "retriever.k=1"])
    assert project.failures() == {"q2": ("reader", KILLED)}
    assert len(project.rows("predictions.jsonl")) == 4
    assert project.outcomes() == ["died"] * 4 + ["finished"]


def test_an_example_that_exceeds_a_limit_of_memory_fails(tmp_path: Path) -> None:
    """If Python raises MemoryError, the worker continues."""
    project = Project(tmp_path, "one", "reader: eat", "three", "four")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (2**32, before[1]))  # inherited by the worker
    try:
        project.run(workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
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
    names = ("one", "deadly", "three")
    rows = [
        {"id": f"{name}-{n}", "document_path": f"{name}.txt", "question": "who?"}
        for name in names
        for n in range(2)
    ]
    texts = {f"{name}.txt": f"Words of {name}. Others." for name in names}
    write_files(tmp_path, {**texts, "plug.py": PLUG_IN + LOADER, "rows.jsonl": rows})
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
