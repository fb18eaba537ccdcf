"""Run whose answers depend on the batches of their reads, and of which some reads fail."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from command_line import write_files

from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles

# An answer contains a hash of its batch, as the last digits of a network depend on the batch. Some
# reads always fail. An environment variable, not the config, makes reads slow: so a test can stop a
# slow run, and resume it at full speed.
PLUG_IN = """
import hashlib, os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from leporello import Output, Read, Search
from leporello.core.passages import Passage
from leporello.core.protocols import Role

@dataclass(frozen=True)
class Mates:
    depends_on: ClassVar[tuple[str, ...]] = ()

    name: str = ""

    def read(self, inputs):
        if "LAMP_SECONDS" in os.environ:
            Path("{began}").touch()
            time.sleep(float(os.environ["LAMP_SECONDS"]))
        if any("11?" in read.question for read in inputs):
            raise RuntimeError("cannot read this")
        texts = [str([p if isinstance(p, str) else p.text for p in r.passages]) for r in inputs]
        mates = hashlib.sha256("".join(texts).encode()).hexdigest()[:8]
        return [Output(f"{r.question} {mates} {self.name}{len(inputs)}") for r in inputs]

    def count(self, texts):
        return [len(text) for text in texts]

@dataclass(frozen=True)
class ThreeRounds:
    first: Role = "answer"

    def combine(self, example, hits):
        first = yield [Read((h.chunk,), example.question, role=self.first) for h in hits]
        [rainy] = yield [Search("rain")]
        second = yield [Read((o.text, rainy[0].chunk), example.question) for o in first[:2]]
        [third] = yield [Read(tuple(o.text for o in second), example.question)]
        return third.text

@dataclass(frozen=True)
class Pairs:
    "Summarises pairs of chunks, then pairs of summaries, up to one root."

    role: Role = "answer"

    def enrich(self, document, chunks):
        passages = level = [*chunks]
        while len(level) > 1:
            pairs = [level[n : n + 2] for n in range(0, len(level), 2)]
            outputs = yield [Read((*pair,), "what do these say?") for pair in pairs]
            level = [Passage.of("summary", [o.text], pair) for pair, o in zip(pairs, outputs)]
            passages = [*passages, *level]
        return passages
"""

CONFIG = """
pipelines:
  mine:
    tasks: [lamps]
    chunker: {class: Paragraphs, size: 20}
    retriever: {class: BM25, k: 3}
    reader: {class: "./plug.py:Mates"}
    combiner: {class: "./plug.py:ThreeRounds"}
  refined: {extends: mine, combiner: {class: Refine}}
  hopping: {extends: mine, combiner: {class: MultiHop, new: 1, combiner: {class: Refine}}}
  rooted: {extends: mine, enricher: {class: "./plug.py:Pairs"}}
  cast:
    extends: mine
    enricher: {class: "./plug.py:Pairs", role: summarise}
    readers:
      summarise: {class: "./plug.py:Mates", name: s}
      select: {class: "./plug.py:Mates", name: q}
    combiner: {class: "./plug.py:ThreeRounds", first: select}
tasks:
  lamps: {class: JsonLines, path: lamps.jsonl}
"""
ARGUMENTS = ("run", "mine", "--config")
PIPELINES = ("mine", "refined", "hopping", "rooted", "cast")  # an enricher of rounds, roles
FILES = ("predictions.jsonl", "failures.jsonl", "statistics.jsonl", "metrics.json")


def project(folder: Path, examples: int, documents: int = 40) -> Path:
    """Writes questions, documents that they are about in turn (at most 97), and the plug-in.

    Returns the config's path.
    """
    rows = []
    for n in range(examples):
        row = {"id": f"q{n}", "document_id": f"d{n % documents}", "question": f"lamp {n % 97}?"}
        if n < documents:
            words = (f"Lamp {m} hangs here, the rain falls on house {m}." for m in range(n, 97, 5))
            row["document"] = "\n\n".join(words)
        rows.append(row)
    plug_in = PLUG_IN.replace("{began}", str(began(folder)))
    write_files(folder, {"lamps.jsonl": rows, "plug.py": plug_in, "mine.yaml": CONFIG})
    return folder / "mine.yaml"


def began(folder: Path) -> Path:
    """Returns the file that a slow reader creates when it starts to read."""
    return folder / "began"


def same_bytes(first: Path, second: Path, *pipelines: str) -> None:
    """Checks that two runs have equal result files, by default those of the pipeline `mine`."""
    for pipeline in pipelines or ("mine",):
        for name in FILES:
            path = Path(pipeline, "lamps", name)
            assert (first / path).read_bytes() == (second / path).read_bytes(), path
        files = (JobFiles(RunDirectory(run), pipeline, "lamps") for run in (first, second))
        lines, expected = ([row.lines for row in of_run.examples()] for of_run in files)
        assert lines == expected


def store(out: Path, shard: int = 0, pipeline: str = "mine") -> Path:
    """Returns the path of a shard's store."""
    return out / "journal" / pipeline / "lamps" / f"{shard:05}.sqlite"


def stored(out: Path) -> int:
    """Returns the number of batches and finished examples in all stores of a run."""
    count = 0
    for path in (out / "journal").rglob("*.sqlite"):
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path)) as database:
            query = "SELECT (SELECT count(*) FROM batch) + (SELECT count(*) FROM done)"
            count += database.execute(query).fetchone()[0]
    return count
