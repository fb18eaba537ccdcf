"""Plug-ins that take their process with them: one example fails, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import read_lines

from leporello.api import Run, UserError, run
from leporello.engine.limits import Limits

PLUG_IN = """
import os, signal, time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from leporello import Document, Example, Hit, Output, Read
from leporello.core.records import DocumentRows

def die(how):
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit": os._exit(0)
    if how == "eat": bytearray(8 << 30)

@dataclass(frozen=True)
class Retriever:
    deadly: bool = True

    def retrieve(self, questions, chunks):
        for question in questions:
            if self.deadly and question.startswith("retriever: "):
                die(question.removeprefix("retriever: "))
        return [[Hit(chunk, 1.0) for chunk in chunks[:2]] for _ in questions]

@dataclass(frozen=True)
class Reader:
    deadly: bool = True
    block: str = ""

    def read(self, inputs):
        while self.block and Path(self.block).exists():
            time.sleep(0.01)
        for read in inputs:
            if self.deadly and read.question.startswith("reader: "):
                die(read.question.removeprefix("reader: "))
        return [Output(f"{read.question}!") for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]

@dataclass(frozen=True)
class Sliding(Reader):
    depends_on_batch = False
    slots = 4

@dataclass(frozen=True)
class Combiner:
    deadly: bool = True

    def combine(self, example, hits):
        first = yield [Read((hit.chunk,), example.question) for hit in hits]
        if self.deadly and example.question.startswith("combiner: "):
            die(example.question.removeprefix("combiner: "))
        [last] = yield [Read((first[0].text,), example.question)]
        return last.text

def document(number):
    return Document(f"d{number}", f"Some words. Others, {number}.")

@dataclass(frozen=True)
class Deadly:
    metrics: tuple[str, ...] = ("f1",)

    def layout(self) -> Iterator[DocumentRows]:
        for number in range(4):
            yield DocumentRows(1, 10, number)

    def examples_of(self, documents, first):
        for rows in documents:
            if rows.rows == 2: die("kill")
            yield Example(f"q{rows.rows}", document(rows.rows), "who?")

    def examples(self):
        yield from self.examples_of(list(self.layout()), 0)

    def fingerprint(self):
        return "1"

@dataclass(frozen=True)
class Closing(Deadly):
    def closed(self, rows, fault):
        yield replace(Example(f"q{rows.rows}", Document("d", ""), "who?"), fault=fault)
"""


class Project:
    """Questions, two on each document, answered by the plug-ins above."""

    def __init__(self, folder: Path, *questions: str, reader: str = "Reader") -> None:
        self.folder, self.block = folder, folder / "block"
        rows = [
            {"id": f"q{n}", "document_id": f"d{n // 2}", "question": question}
            | ({} if n % 2 else {"document": f"Some words. Others of document {n}."})
            for n, question in enumerate(questions)
        ]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "plug.py").write_text(PLUG_IN)
        self.config = folder / "mine.yaml"
        self.config.write_text(f"""
pipelines:
  mine:
    tasks: [rows]
    chunker: {{class: Sentences, size: 1}}
    retriever: {{class: "./plug.py:Retriever"}}
    reader: {{class: "./plug.py:{reader}"}}
    combiner: {{class: "./plug.py:Combiner"}}
  harmless:
    extends: mine
    retriever: {{class: "./plug.py:Retriever", deadly: false}}
    reader: {{class: "./plug.py:{reader}", deadly: false}}
    combiner: {{class: "./plug.py:Combiner", deadly: false}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
  deadly: {{class: "./plug.py:Deadly"}}
  closing: {{class: "./plug.py:Closing"}}
""")

    def run(self, pipeline: str = "mine", out: str = "out", **options: Any) -> Run:
        """Runs a pipeline."""
        given = {"config": [self.config], "out": self.folder / out, "cached": False}
        return run([pipeline], **{**given, **options})

    def failures(self, out: str = "out") -> dict[str, tuple[str, str]]:
        """Returns (stage, error) of what failed, by the example's id."""
        rows = read_lines(self.folder / out / "mine" / "rows" / "failures.jsonl")
        return {row["id"]: (row["stage"], row["error"]) for row in rows}

    def holds_all_others(self, out: str = "out") -> None:
        """Holds what did not fail against a run in which nothing dies."""
        self.run("harmless", "harmless", workers=0)
        names = ("predictions.jsonl", "calls.jsonl")
        failed = self.failures(out)
        for name in names:
            whole = read_lines(self.folder / "harmless" / "harmless" / "rows" / name)
            found = read_lines(self.folder / out / "mine" / "rows" / name)
            assert found == [row for row in whole if row["id"] not in failed]

    def workers(self, out: str = "out") -> list[dict[str, Any]]:
        """Returns the lines of workers.jsonl."""
        return read_lines(self.folder / out / "workers.jsonl")


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
        project.run(workers=0)
    assert project.failures() == {"q3": (stage, told)}
    project.holds_all_others()
    rows = project.workers()
    assert [row["outcome"] for row in rows] == ["died"] * deaths + ["finished"]
    assert not list((tmp_path / "out" / "attempts").rglob("*.jsonl"))


@pytest.mark.slow
def test_a_read_that_kills_among_reads_under_way_at_once_fails_alone(tmp_path: Path) -> None:
    """Where reads go out one by one, over several shards, the guilty one is found all the same."""
    project = Project(tmp_path, "1", "2", "3", "reader: kill", "5", "6", reader="Sliding")
    project.run(limits=Limits(shard_examples=2))
    assert project.failures() == {"q3": ("reader", KILLED)}
    project.holds_all_others()


def test_more_memory_than_a_worker_may_have_fails_its_example(tmp_path: Path) -> None:
    """Where Python notices, the worker lives on."""
    project = Project(tmp_path, "one", "reader: eat", "three", "four")
    project.run(overrides=["placement.worker_memory=4GiB"])
    assert project.failures() == {"q1": ("reader", "MemoryError: ")}
    assert [row["outcome"] for row in project.workers()] == ["finished"]
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
    done = project.run()
    told = f"rows.jsonl:{{}}: document_path: {KILLED}"
    assert project.failures() == {
        "deadly-0": ("task", told.format(3)), "deadly-1": ("task", told.format(4))
    }  # fmt: skip
    found = [prediction.id for prediction in done.predictions("mine", "rows")]
    assert found == ["one-0", "one-1", "three-0", "three-1"]
    assert [row["outcome"] for row in project.workers()] == ["died"] * 3 + ["finished"]


def test_a_task_of_ones_own_whose_document_kills_says_which(tmp_path: Path) -> None:
    """Unless it can tell of examples without opening their documents."""
    project = Project(tmp_path, "one")
    with pytest.raises(UserError, match="task 'deadly': document 3 cannot be opened: its process"):
        project.run(tasks=["deadly"])
    done = project.run(tasks=["closing"], out="other")
    assert [(f.example_id, f.stage) for f in done.failed("mine", "closing")] == [("q2", "task")]
    assert len([*done.predictions("mine", "closing")]) == 3
