"""Plan of a run: finished and remaining work."""

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache
from leporello.config import Spec
from leporello.config.placement import Placement
from leporello.core.errors import UserError
from leporello.core.files import cache_directory
from leporello.core.protocols import RendersPrompt
from leporello.core.records import Example, Read
from leporello.engine.active_example import first_reads
from leporello.engine.failures import ExampleError
from leporello.engine.selection import by_document, select_document
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, changes, job_directory

_SHOWN = 60  # characters of a parameter
_DOCUMENTS, _EXAMPLES = 4, 4  # documents that are tried, and examples per document
_ROWS = 200  # finished examples that are counted


@dataclass(slots=True)
class PlannedJob:
    """Planned work of one pipeline on one task."""

    pipeline: str
    task: str
    directory: Path
    stages: tuple[str, ...]  # as calls of their classes with the parameters from the config
    placement: Placement
    changed: tuple[str, ...]  # differences from an earlier run here, which require `--update`
    documents: int = 0  # number of documents with unfinished examples
    examples: int = 0
    done: int = 0  # number of examples that an earlier run has finished, including failures
    failed: int = 0  # number of these that failed; they are run again once all others are finished
    calls: int = 0  # number of remaining reads, extrapolated
    tokens: int = 0  # number of input tokens of these reads; 0 if the reader counts none
    at_least: bool = False  # whether calls and tokens come from first reads of unfinished examples


def plan(
    jobs: Sequence[Job], out: Path | None = None, limit: int | None = None
) -> list[PlannedJob]:
    """Counts the remaining work; calls and tokens are extrapolated from a sample of documents."""
    directory, built = RunDirectory(job_directory(jobs, out)), dict[str, Any]()
    directory.check_stores()
    cache = Cache(cache_directory())
    planned: dict[str, PlannedJob] = {}
    for task in dict.fromkeys(job.task.name for job in jobs):
        counters = [_JobCounter(job, directory, built) for job in jobs if job.task.name == task]
        examples = islice(examples_of(counters[0].job.source, task), limit)
        for first, group in by_document(examples):
            group[0].document.use_cache(cache)
            for counter in counters:
                counter.count(range(first, first + len(group)), group)
        planned |= {counter.job.name: counter.estimated() for counter in counters}
    return [planned[job.name] for job in jobs]


class _JobCounter:
    """Counts the work of a job, and the reads of a sample of its examples."""

    def __init__(self, job: Job, directory: RunDirectory, built: dict[str, Any]) -> None:
        self.job, self.stages = job, job.pipeline.build(built)
        self.files = JobFiles(directory, job.pipeline.name, job.task.name)
        self.planned = PlannedJob(
            job.pipeline.name,
            job.task.name,
            directory.path,
            tuple(map(_as_configured, job.pipeline.stages.values())),
            job.placement,
            changes(directory, job),
        )
        # With other settings, nothing that is finished can be reused.
        earlier = () if self.planned.changed else self.files.statistics()
        self.done = {example.number: example.failure is not None for example in earlier}
        self._documents: list[Sequence[Example]] = []  # a sample of those with unfinished examples
        self._random = random.Random(0)
        self._reads: list[tuple[int, int]] = []  # reads and input tokens of the sampled examples

    def count(self, numbers: range, group: Sequence[Example]) -> None:
        """Counts the examples on a document."""
        planned = self.planned
        failures = [self.done[number] for number in numbers if number in self.done]
        planned.examples += len(numbers)
        planned.done += len(failures)
        planned.failed += sum(failures)
        if len(failures) == len(numbers):
            return
        planned.documents += 1
        if len(self._documents) < _DOCUMENTS:
            self._documents.append(group)
        # Reservoir sampling: each document has the same chance, and only four are in memory.
        elif (index := self._random.randrange(planned.documents)) < _DOCUMENTS:
            self._documents[index] = group

    def estimated(self) -> PlannedJob:
        """Returns the planned job with its reads and tokens."""
        planned = self.planned
        self._count_reads()
        share = (planned.examples - planned.done) / (len(self._reads) or 1)
        planned.calls = round(share * sum(reads for reads, _ in self._reads))
        planned.tokens = round(share * sum(tokens for _, tokens in self._reads))
        return planned

    def _count_reads(self) -> None:
        """Counts the reads of finished examples; if none is finished, tries the sample."""
        finished = (row for row in self.files.examples() if row.prediction) if self.done else ()
        self._reads = [
            (len(row.calls), row.statistics.input_tokens) for row in islice(finished, _ROWS)
        ]
        if self._reads:
            return
        self.planned.at_least = True
        # Making passages may take reads, so no example of a pipeline with an enricher is tried.
        if self.stages.enricher is not None:
            return
        for group in self._documents:
            examples = [example for example in group if not example.fault][:_EXAMPLES]
            selections = select_document(self.stages, examples)
            for example, selection in zip(examples, selections, strict=True):
                reads: Sequence[Read] = ()
                with suppress(ExampleError):  # it reads nothing
                    reads = first_reads(self.stages, example, selection)
                self._reads.append((len(reads), sum(map(self._size, reads))))

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


def _call(stage: Any) -> str:  # noqa: ANN401 -- JSON
    """Formats the JSON of a stage as a call of its class."""
    if isinstance(stage, list):
        return f"[{', '.join(map(_call, stage))}]"
    if not isinstance(stage, dict) or "class" not in stage:
        text = repr(stage)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    name = stage["class"].rpartition(":")[2].rpartition(".")[2]
    params = (f"{n}={_call(value)}" for n, value in stage.items() if n != "class")
    return f"{name}({', '.join(params)})"


def _as_configured(spec: Spec) -> str:
    """Returns a stage as a call with the parameters from the config, without defaults."""
    resolved = spec.resolved()
    return _call({n: value for n, value in resolved.items() if n == "class" or n in spec.params})
