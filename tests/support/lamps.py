"""A run whose answers depend on the windows they were read in, with some that fail."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from command_line import write_files

# Its answers tell who was read together, as a float reader's may; some reads fail, always. How
# long it reads is no part of the config: a run that is stopped at leisure is resumed without.
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

    log: str = ""
    name: str = ""

    def read(self, inputs):
        if "LAMP_SECONDS" in os.environ:
            Path("{began}").touch()
            time.sleep(float(os.environ["LAMP_SECONDS"]))
        if any("11?" in read.question for read in inputs):
            raise RuntimeError("cannot read this")
        told = [str([p if isinstance(p, str) else p.text for p in r.passages]) for r in inputs]
        if self.log:
            with open(self.log, "a") as file:
                file.writelines(f"{read.question}\\n" for read in inputs)
        mates = hashlib.sha256("".join(told).encode()).hexdigest()[:8]
        return [Output(f"{r.question} {mates} {self.name}{len(inputs)}") for r in inputs]

    def count(self, texts):
        return [len(text) for text in texts]

@dataclass(frozen=True)
class ThreeRounds:
    first: Role = "answer"

    def combine(self, example, hits):
        first = yield [Read((h.chunk,), example.question, role=self.first) for h in hits]
        [found] = yield [Search("rain")]
        second = yield [Read((o.text, found[0].chunk), example.question) for o in first[:2]]
        [third] = yield [Read(tuple(o.text for o in second), example.question)]
        return third.text

@dataclass(frozen=True)
class Pairs:
    "Reads two and two, then what came of them, up to one root."

    role: Role = "answer"

    def enrich(self, document, chunks):
        made = level = [*chunks]
        while len(level) > 1:
            pairs = [level[n : n + 2] for n in range(0, len(level), 2)]
            outputs = yield [Read((*pair,), "what do these say?") for pair in pairs]
            said = zip(pairs, outputs)
            level = [Passage.of("summary", [o.text], pair) for pair, o in said]
            made = [*made, *level]
        return made
"""

ARGUMENTS = ("run", "mine", "--config")
PIPELINES = ("mine", "refined", "hopping", "rooted", "cast")  # an enricher of rounds, roles
FILES = ("predictions.jsonl", "calls.jsonl", "failures.jsonl", "metrics.json")


def project(folder: Path, examples: int, log: Path | None = None, documents: int = 40) -> Path:
    """Writes documents, questions and the plug-in; returns the config's path.

    Args:
        folder: Where to.
        examples: Questions.
        log: Where the reader writes down what it reads.
        documents: That the questions are on, in turn; 97 at most.
    """
    rows = []
    for n in range(examples):
        row = {"id": f"q{n}", "document_id": f"d{n % documents}", "question": f"lamp {n % 97}?"}
        if n < documents:
            words = (f"Lamp {m} hangs here, the rain falls on house {m}." for m in range(n, 97, 5))
            row["document"] = "\n\n".join(words)
        rows.append(row)
    config = f"""
pipelines:
  mine:
    tasks: [lamps]
    chunker: {{class: Paragraphs, size: 20}}
    retriever: {{class: BM25, k: 3}}
    reader: {{class: "./plug.py:Mates", log: "{log or ""}"}}
    combiner: {{class: "./plug.py:ThreeRounds"}}
  refined: {{extends: mine, combiner: {{class: Refine}}}}
  hopping: {{extends: mine, combiner: {{class: MultiHop, new: 1, combiner: {{class: Refine}}}}}}
  rooted: {{extends: mine, enricher: {{class: "./plug.py:Pairs"}}}}
  cast:
    extends: mine
    enricher: {{class: "./plug.py:Pairs", role: summarise}}
    readers:
      summarise: {{class: "./plug.py:Mates", name: s}}
      select: {{class: "./plug.py:Mates", name: q}}
    combiner: {{class: "./plug.py:ThreeRounds", first: select}}
tasks:
  lamps: {{class: JsonLines, path: lamps.jsonl}}
"""
    plug_in = PLUG_IN.replace("{began}", str(began(folder)))
    write_files(folder, {"lamps.jsonl": rows, "plug.py": plug_in, "mine.yaml": config})
    return folder / "mine.yaml"


def began(folder: Path) -> Path:
    """Returns the file that is there once a reader whose reading takes time has begun to."""
    return folder / "began"


def same_bytes(one: Path, other: Path, *pipelines: str) -> None:
    """Holds the files of two runs against each other; of `mine`, if no pipeline is named."""
    for pipeline in pipelines or ("mine",):
        for name in FILES:
            path = Path(pipeline, "lamps", name)
            assert (one / path).read_bytes() == (other / path).read_bytes(), path


def store(out: Path, shard: int = 0, pipeline: str = "mine") -> Path:
    """Returns where a run keeps the store of a shard."""
    return out / "journal" / pipeline / "lamps" / f"{shard:05}.sqlite"


def stored(out: Path) -> int:
    """Returns how many batches and finished examples all stores of a run hold."""
    count = 0
    for path in (out / "journal").rglob("*.sqlite"):
        with suppress(sqlite3.OperationalError), closing(sqlite3.connect(path)) as database:
            query = "SELECT (SELECT count(*) FROM batch) + (SELECT count(*) FROM done)"
            count += database.execute(query).fetchone()[0]
    return count
