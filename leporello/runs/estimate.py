"""Estimates the work and the duration of runs from finished examples, trials and past timings.

`LEPORELLO_CACHE/timings.jsonl` has one line per run and stage; the last lines of a stage are used.
"""

from __future__ import annotations

import json
import logging
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from errno import EEXIST
from pathlib import Path
from statistics import median

from leporello.config import Pipeline, PipelineSpec
from leporello.core.errors import UserError
from leporello.core.hashing import digest
from leporello.core.protocols import ANSWER, RendersPrompt
from leporello.core.records import JSON, Example, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.selection import Selection, select_document
from leporello.jobs.files import JobFiles

_DOCUMENTS, _EXAMPLES = 4, 4  # documents that are tried, and examples per document
_ROWS = 200  # finished examples that are counted
_FILE = "timings.jsonl"
# Machines and libraries change, so older runs would mislead; the median ignores a busy one.
_LAST = 10  # runs that an estimate is based on
_log = logging.getLogger("leporello")


@dataclass
class WorkEstimate:
    """Counts the reads of a sample of examples, to extrapolate the total."""

    stages: Pipeline
    examples: int = 0
    reads: int = 0  # number of reads of these examples
    tokens: int = 0  # number of input tokens of these reads, if the reader counts them
    # Whether combiners were run up to their first reads because no example is finished.
    tried: bool = False
    # Whether all passages exist. If not, making them takes reads, and no example is tried.
    enriched: bool = True
    _documents: list[Sequence[Example]] = field(default_factory=list)
    _offered: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(0))

    def offer(self, examples: Sequence[Example]) -> None:
        """Adds the examples on a document to the random sample if the document is drawn."""
        self._offered += 1
        if len(self._documents) < _DOCUMENTS:
            self._documents.append(examples)
        # Reservoir sampling: each document has the same chance, and only four are in memory.
        elif (index := self._random.randrange(self._offered)) < _DOCUMENTS:
            self._documents[index] = examples

    def look(self, files: JobFiles | None) -> None:
        """Counts the reads of finished examples; if none is finished, tries the sample."""
        finished = 0
        for example in files.examples() if files else ():
            if example.prediction is None:
                continue
            finished += 1
            outputs = [call["output"] for call in example.calls]
            self._count(len(outputs), example.statistics.input_tokens)
            if finished == _ROWS:
                break
        if not finished and self.enriched:
            self.tried = True
            for examples in self._documents:
                self._try(examples[:_EXAMPLES])

    def extrapolate(self, count: int, examples: int) -> int:
        """Extrapolates a count from the sample to a number of examples."""
        return round(count / self.examples * examples) if self.examples else 0

    def _try(self, examples: Sequence[Example]) -> None:
        selections = select_document(self.stages, examples)
        for example, selection in zip(examples, selections, strict=True):
            reads: Sequence[Read] = []
            if not isinstance(selection, ExampleError):
                reads = self._reads(example, selection)
            self._count(len(reads), sum(map(self._size, reads)))

    def _reads(self, example: Example, selection: Selection) -> Sequence[Read]:
        """Returns the first reads of an example; an empty list if it fails."""
        active = ActiveExample.create(self.stages, 0, example, selection)
        try:
            with stage_errors("combiner"):
                active.start()
        except ExampleError:
            return []
        return active.reads

    def _size(self, read: Read) -> int:
        """Returns the tokens of a rendered read; 0 if the reader cannot render it."""
        reader = self.stages.reader_of(read.role)
        if not isinstance(reader, RendersPrompt):
            return 0
        try:
            tokens: int = reader.count([reader.render(read)])[0]  # type: ignore[attr-defined]  # every reader counts
        except UserError:
            raise
        except Exception:  # the run will report the error when it reads this
            return 0
        return tokens

    def _count(self, reads: int, tokens: int) -> None:
        self.examples += 1
        self.reads += reads
        self.tokens += tokens


def selecting_key(pipeline: PipelineSpec) -> str:
    """Returns the key of a pipeline's chunking and retrieval: a hash of these stages."""
    stages = {key: pipeline.stages[key].resolved() for key in ("chunker", "retriever")}
    return digest({**stages})


def reading_key(pipeline: PipelineSpec, role: str = ANSWER) -> str:
    """Returns the key of a pipeline's reads in a role: a hash of the reader."""
    return digest(pipeline.readers[role].resolved())


def sizes_key(pipeline: PipelineSpec) -> str:
    """Returns the key of the micro-batch sizes that a pipeline's readers determined."""
    return " ".join(reading_key(pipeline, role) for role in pipeline.readers)


def record_timing(root: Path, key: str, unit: str, count: int, seconds: float) -> None:
    """Appends a timing to the file in the cache; warns if it cannot be written."""
    # A run that took everything from the cache shows nothing about the speed.
    if not count:
        return
    path = root / _FILE
    row: dict[str, JSON] = {"stage": key, "unit": unit, "count": count, "seconds": seconds}
    line = json.dumps(row).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check(path)
        with path.open("ab", buffering=0) as file:
            file.write(line)  # in one call, so lines of two processes do not mix
    except OSError as error:
        _log.warning("%s: timings for `plan` cannot be stored: %s", path, error.strerror)


def timed_rates(root: Path) -> Mapping[tuple[str, str], float]:
    """Returns the median seconds per unit in the last runs, by stage and unit."""
    rates: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    with suppress(OSError):  # the file is missing or not readable
        _check(root / _FILE)
        for line in (root / _FILE).read_bytes().splitlines():
            with suppress(
                ValueError, KeyError, TypeError, ZeroDivisionError
            ):  # a kill cut the line
                row = json.loads(line)
                rates[row["stage"], row["unit"]].append(row["seconds"] / row["count"])
    # A median, since one run on a busy machine must not change the estimates.
    return {key: median(values[-_LAST:]) for key, values in rates.items()}


def _check(path: Path) -> None:
    """Raises OSError if the path is a pipe, since opening it would block."""
    if path.exists() and not path.is_file():
        raise FileExistsError(EEXIST, "it is not a file")
