"""Stages that raise, hang, die or return nonsense: their example fails, and nothing else."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import HERE, leporello, read_lines
from results import reseal

from leporello.api import Run, UserError, run
from leporello.engine.limits import Limits

PLUG_IN = """
import os, signal, time
from dataclasses import dataclass
from pathlib import Path
from leporello import Hit, Output, Read, Span

@dataclass(frozen=True)
class Retriever:
    log: str = ""
    k: int = 1

    def retrieve(self, questions, chunks):
        with open(self.log, "a") as file:
            file.write(f"retrieve {self.k}\\n")
        for question in questions:
            match question:
                case "hang": time.sleep(600)
                case "hang in C":
                    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
                    time.sleep(600)
                case "raise": raise LookupError("a broken question")
        return [[Hit(chunk, 1.0) for chunk in chunks[: self.k]] for _ in questions]

@dataclass(frozen=True)
class Chunker:
    log: str

    def chunk(self, document):
        with open(self.log, "a") as file:
            file.write(f"chunk {document.id}\\n")
        yield Span(0, len(document.text))

@dataclass(frozen=True)
class Reader:
    log: str = ""
    switch: str = ""

    def read(self, inputs):
        with open(self.log, "a") as file:
            file.writelines(f"read {read.question}\\n" for read in inputs)
        for read in inputs:
            if read.question == "slow to read":
                time.sleep(600)
            if read.question == "unreadable" and not Path(self.switch).exists():
                raise RuntimeError("cannot read this")
        return [Output(f"{read.question}!") for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]

@dataclass(frozen=True)
class Combiner:
    def combine(self, example, hits):
        if example.question == "muse":
            time.sleep(600)
        if example.question == "odd":
            [output] = yield [Read((hits[0].chunk,), question=example.question, title=Path("x"))]
            return output.text
        if example.question == "not finite":
            return float("nan")
        [output] = yield [Read((hits[0].chunk,), question=example.question)]
        return output.text
"""


class Project:
    """Questions on few documents, answered by the plug-ins above."""

    def __init__(self, folder: Path, questions: list[str], documents: int = 2) -> None:
        self.folder, self.out, self.log = folder, folder / "out", folder / "log.txt"
        rows = [
            {"id": f"q{n}", "document_id": f"d{n % documents}", "question": question}
            | ({"document": f"Text of document {n}."} if n < documents else {})
            for n, question in enumerate(questions)
        ]
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / "plug.py").write_text(PLUG_IN)
        self.config = folder / "mine.yaml"
        self.config.write_text(f"""
pipelines:
  mine:
    tasks: [rows]
    chunker: {{class: "./plug.py:Chunker", log: {self.log}}}
    retriever: {{class: "./plug.py:Retriever", log: {self.log}}}
    reader: {{class: "./plug.py:Reader", log: {self.log}, switch: "{folder}/switch"}}
    combiner: {{class: "./plug.py:Combiner"}}
tasks:
  rows: {{class: JsonLines, path: rows.jsonl}}
""")

    @property
    def journal(self) -> Path:
        """Journal of the only shard."""
        return self.out / "journal" / "mine" / "rows" / "00000.jsonl"

    def run(self, **options: Any) -> Run:
        """Runs the pipeline, in this process unless it is said otherwise."""
        return run(["mine"], config=[self.config], out=self.out, **{"workers": 0, **options})

    def failures(self) -> dict[str, tuple[str, str]]:
        """Returns (stage, error) of what failed, by the example's id."""
        rows = read_lines(self.out / "mine" / "rows" / "failures.jsonl")
        return {row["id"]: (row["stage"], row["error"]) for row in rows}

    def logged(self) -> Counter[str]:
        """Returns what the stages were asked, and how often."""
        return Counter(self.log.read_text().splitlines() if self.log.exists() else [])


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_stage_raises_fails_its_example_alone(tmp_path: Path, workers: int) -> None:
    """In this process and in others: the stage, the error and a file with the traceback."""
    project = Project(tmp_path, ["one", "two", "raise", "unreadable", "odd", "not finite", "end"])
    done = project.run(workers=workers)
    assert project.failures() == {
        "q2": ("retriever", "LookupError: a broken question"),
        "q3": ("reader", "RuntimeError: cannot read this"),
        "q4": ("combiner", "TypeError: a Read's title must be text, got PosixPath('x')"),
        "q5": ("combiner", "ValueError: Out of range float values are not JSON compliant"),
    }
    assert {p.id: p.prediction for p in done.predictions("mine", "rows")} == {
        "q0": "one!", "q1": "two!", "q6": "end!"
    }  # fmt: skip
    folder = project.out / "mine" / "rows"
    for row in read_lines(folder / "failures.jsonl"):
        trace = (folder / row["traceback"]).read_text()
        assert row["error"] in trace
        assert "plug.py" in trace or row["stage"] == "combiner"


def test_an_example_that_takes_too_long_fails_alone(tmp_path: Path) -> None:
    """Selecting, combining and reading are limited, by the time of the example itself."""
    project = Project(tmp_path, ["one", "hang", "muse", "slow to read", "five"])
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
    project = Project(tmp_path, ["one", "hang in C", "three"], documents=1)
    plug_in = tmp_path / "plug.py"
    sooner = "from leporello.engine import time_limit\ntime_limit._GRACE = 1.0\n"
    plug_in.write_text(plug_in.read_text() + sooner)
    project.run(workers=1, limits=Limits(example_timeout=0.2))
    assert project.failures() == {
        "q1": ("retriever", "took far longer than its time, and could not be interrupted")
    }
    outcomes = [row["outcome"] for row in read_lines(project.out / "workers.jsonl")]
    assert outcomes == ["died", "died", "finished"]  # with the others, then alone


def test_failed_examples_are_tried_again_by_the_next_run(tmp_path: Path) -> None:
    """They alone; once they are answered, nothing is left to do."""
    project = Project(tmp_path, ["one", "unreadable", "three", "raise"])
    assert project.run(cached=False).failures == 2
    before = project.logged()
    (tmp_path / "switch").touch()
    done = project.run(cached=False)
    assert done.failures == 1
    assert [p.id for p in done.predictions("mine", "rows")] == ["q0", "q2", "q1"]
    again = project.logged() - before
    assert {what for what in again if what.startswith("read")} == {"read unreadable"}
    assert project.run().failures == 1


def test_a_retry_that_is_cut_anywhere_goes_on(tmp_path: Path) -> None:
    """The pass that tries failures again is resumed like any other."""
    project = Project(tmp_path, ["unreadable", "two", "raise", "unreadable", "five"] * 20)
    project.run(workers=0, cached=False)
    before = shutil.copytree(project.out, tmp_path / "before")
    (tmp_path / "switch").touch()
    project.run(workers=0, cached=False)
    path = project.journal
    files = [project.out / "mine" / "rows" / f"{n}.jsonl" for n in ("predictions", "failures")]
    whole, journal = [file.read_bytes() for file in files], path.read_bytes().splitlines(True)
    [retry] = [place for place, line in enumerate(journal) if line.startswith(b'{"retry"')]
    for count in range(retry + 1, len(journal), 9):
        shutil.rmtree(project.out)
        shutil.copytree(before, project.out)
        path.write_bytes(b"".join(journal[:count]) + journal[count][:20])
        project.run(workers=0, cached=False)
        assert [file.read_bytes() for file in files] == whole


@pytest.mark.parametrize(("bound", "stopped"), [("1", True), ("20%", True), ("0.9", False)])
def test_too_many_failures_end_the_run(tmp_path: Path, bound: str, stopped: bool) -> None:
    """A number or a share; what is finished is kept, and the next run goes on."""
    project = Project(tmp_path, ["raise", "unreadable", "three", "raise", "five"] * 20)
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
    project = Project(tmp_path, ["one", "two", "three"])
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
        project = Project(folder, ["one", "two", "three", "four"])
        project.run(workers=workers, overrides=["retriever.k=1,2,3"])
        logged = project.logged()
        assert {what: n for what, n in logged.items() if what.startswith("chunk")} == {
            "chunk d0": 1, "chunk d1": 1
        }  # fmt: skip
        assert [logged[f"retrieve {k}"] for k in (1, 2, 3)] == [2, 2, 2]


def test_data_that_changes_under_a_run_is_noticed(tmp_path: Path) -> None:
    """A run whose data are another thing at its end than at its beginning says so."""
    project = Project(tmp_path, ["one", "two"])
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
