"""Stages and tasks that raise or die at questions such as `reader: kill`."""

from pathlib import Path
from typing import Any

from command_line import read_lines, write_files

from leporello.api import Run, run

# Nothing misbehaves if a file `harmless` exists; `fail` needs that no file `repaired` exists.
PLUG_IN = """
import os, re, signal
from dataclasses import dataclass, replace
from pathlib import Path
from leporello import Document, Example, Hit, Output, Read, Span
from leporello.core.records import DocumentRows

HERE = Path(__file__).parent

def meet(stage, question):
    at, _, how = question.partition(": ")
    if at != stage or (HERE / "harmless").exists():
        return
    match how:
        case "raise": raise LookupError("a broken question")
        case "fail" if not (HERE / "repaired").exists(): raise RuntimeError("cannot read this")
        case "kill": os.kill(os.getpid(), signal.SIGKILL)
        case "exit": os._exit(0)
        case "eat": bytearray(8 << 30)

@dataclass(frozen=True)
class Chunker:
    def chunk(self, document):
        for sentence in re.finditer(r"[^.]+\\.", document.text):
            yield Span(*sentence.span())

@dataclass(frozen=True)
class Retriever:
    k: int = 2

    def retrieve(self, questions, chunks):
        for question in questions:
            meet("retriever", question)
        return [[Hit(chunk, 1.0) for chunk in chunks[: self.k]] for _ in questions]

@dataclass(frozen=True)
class Reader:
    def read(self, inputs):
        for read in inputs:
            with (HERE / "log.txt").open("a") as file:
                file.write(f"{read.question}\\n")
            meet("reader", read.question)
        return [Output(f"{read.question}!") for read in inputs]

    def count(self, texts):
        return [0 for _ in texts]

@dataclass(frozen=True)
class Sliding(Reader):
    depends_on_batch = False
    slots = 2

@dataclass(frozen=True)
class Combiner:
    def combine(self, example, hits):
        first = yield [Read((hit.chunk,), example.question) for hit in hits]
        meet("combiner", example.question)
        [last] = yield [Read((first[0].text,), example.question)]
        return last.text

@dataclass(frozen=True)
class Deadly:
    metrics: tuple[str, ...] = ("f1",)

    def layout(self):
        for number in range(4):
            yield DocumentRows(1, 10, number)

    def examples_of(self, documents, first):
        for rows in documents:
            if rows.rows == 2: os.kill(os.getpid(), signal.SIGKILL)
            yield Example(f"q{rows.rows}", Document(f"d{rows.rows}", "Some words."), "who?")

    def examples(self):
        yield from self.examples_of(list(self.layout()), 0)

    def fingerprint(self):
        return "1"

@dataclass(frozen=True)
class Closing(Deadly):
    def closed(self, rows, fault):
        yield replace(Example(f"q{rows.rows}", Document("d", ""), "who?"), fault=fault)
"""
CONFIG = """
pipelines:
  mine:
    tasks: [rows]
    chunker: {class: "./plug.py:Chunker"}
    retriever: {class: "./plug.py:Retriever"}
    reader: {class: "./plug.py:Reader"}
    combiner: {class: "./plug.py:Combiner"}
tasks:
  rows: {class: JsonLines, path: rows.jsonl}
  deadly: {class: "./plug.py:Deadly"}
  closing: {class: "./plug.py:Closing"}
"""


class Project:
    """Project with two questions per document of two sentences, and the plug-ins above."""

    def __init__(self, folder: Path, *questions: str) -> None:
        self.folder, self.out = folder, folder / "out"
        rows = [
            {"id": f"q{n}", "document_id": f"d{n // 2}", "question": question}
            | ({} if n % 2 else {"document": f"Some words. Others of document {n}."})
            for n, question in enumerate(questions)
        ]
        self.config = folder / "mine.yaml"
        write_files(folder, {"rows.jsonl": rows, "plug.py": PLUG_IN, "mine.yaml": CONFIG})

    def run(self, out: str = "out", **options: Any) -> Run:
        """Runs the pipeline without the cache, by default in this process."""
        defaults = {"config": [self.config], "out": self.folder / out, "cached": False}
        return run(["mine"], **{**defaults, "workers": 0, **options})

    def rows(self, name: str, out: str = "out") -> list[dict[str, Any]]:
        """Returns the rows of a result file."""
        return read_lines(self.folder / out / "mine" / "rows" / name)

    def failures(self) -> dict[str, tuple[str, str]]:
        """Returns the stage and error of failed examples by their ids."""
        return {row["id"]: (row["stage"], row["error"]) for row in self.rows("failures.jsonl")}

    def holds_all_others(self) -> None:
        """Checks that all other examples have the same results as in a run without faults."""
        (self.folder / "harmless").touch()
        self.run("whole")
        failed = self.failures()
        for name in ("predictions.jsonl", "statistics.jsonl"):
            rows, expected = (
                [row for row in self.rows(name, out) if row["id"] not in failed]
                for out in ("out", "whole")
            )
            assert rows == expected

    def outcomes(self) -> list[str]:
        """Returns the outcome of each attempt to run a shard."""
        return [row["outcome"] for row in read_lines(self.out / "workers.jsonl")]

    def logged(self) -> list[str]:
        """Returns the questions of all reads so far."""
        return (self.folder / "log.txt").read_text().splitlines()
