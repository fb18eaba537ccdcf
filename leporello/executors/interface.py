"""What is handed to a worker, and what comes back."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from leporello.config import PipelineSpec, Spec, TaskSpec
from leporello.config.metrics import own_metrics
from leporello.core.calls.budget import Ledger, SharedBudget
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import JSON
from leporello.engine.database import StoreCounts
from leporello.engine.limits import Limits, deadline_of
from leporello.engine.reading import ReadStatistics
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.shards import Shard
from leporello.storage.runs import RemoteRun


@dataclass(frozen=True, slots=True)
class BatchSpec:
    """Pipelines that run side by side: on one task, with one reader.

    Attributes:
        pipelines: The pipelines; elsewhere a pipeline is named by its place here.
        runs: Hash of what the results of each depend on.
        sources: Hash of the source of each class, by its name.
        task: The task.
        directory: Directory of the run.
        limits: Numbers that results depend on.
        cache: Directory of the cache; None caches nothing.
        selectors: Number of processes a worker that divide and select ahead of its reader.
        driver: Token of the process that hands out shards, another one each time it is started.
        remote: The run at a URL, of which the directory is a copy; None if it is at none.
        built: The task itself, for this process alone: what is validated on may be part of a
            declared task, and is then no other's.
        metrics: Metrics that predictions are scored with.
        report_every: Seconds between a worker's reports of its progress.
    """

    pipelines: Sequence[PipelineSpec]
    runs: Sequence[str]
    sources: Mapping[str, str]
    task: TaskSpec
    directory: Path
    limits: Limits
    cache: Path | None
    selectors: int
    driver: str
    remote: RemoteRun | None = None
    built: Task | None = None
    metrics: Sequence[MetricEntry] = ()
    report_every: float = 0.2

    def all_specs(self) -> Iterator[Spec]:
        """Yields the classes of stages, task and metrics of the user's own, with those in them."""
        for pipeline in self.pipelines:
            yield from pipeline.all_specs()
        for root in (self.task.spec, *own_metrics(self.metrics)):
            yield from root.all_specs()

    def deadline(self, shard: int) -> Path:
        """Returns the file of the deadline of a shard, which a worker keeps for whoever watches."""
        directory = RunDirectory(self.directory)
        files = JobFiles(directory, self.pipelines[0].name, self.task.name)
        return deadline_of(files.attempts(shard))

    def reason_to_supervise(self) -> str:
        """Returns why a process should work at it that may be ended; nothing if none needs to."""
        if sys.platform == "win32":  # which has no workers
            return ""
        foreign = (
            s.name for s in self.all_specs() if not s.cls.__module__.startswith("leporello.")
        )
        if name := next(foreign, ""):
            return f"{name} is no class of Leporello's"
        limited = self.limits.example_timeout is not None
        return "a time limit needs a process that can be ended" if limited else ""


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """A shard that is to be worked at.

    Attributes:
        shard: The shard.
        pipelines: Places of the pipelines that have anything left to do.
        sizes: Sizes of batches that the reader found itself.
        retry: Whether what failed is tried again.
        budgets: Budgets that the worker's readers share with those of other workers, by role.
        cause: Cause of the last worker's death that was at it, as `was killed by signal 9`; empty
            if none.
    """

    shard: Shard
    pipelines: tuple[int, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    retry: bool = False
    budgets: Mapping[str, SharedBudget] = field(default_factory=dict)
    cause: str = ""


@dataclass
class SelectStatistics:
    """What dividing and selecting came to.

    Attributes:
        documents: Number of documents that were selected from.
        characters: Characters of these.
        seconds: Seconds spent; what pipelines share, the first of them pays.
    """

    documents: int = 0
    characters: int = 0
    seconds: float = 0.0

    def add(self, more: SelectStatistics) -> None:
        """Adds what more of it came to."""
        self.documents += more.documents
        self.characters += more.characters
        self.seconds += more.seconds


@dataclass
class PipelineShare:
    """What one pipeline did at a shard.

    Attributes:
        counts: Numbers of finished rows of the shard, by whichever process.
        examples: Number of examples that were finished by this worker.
        selecting: Statistics of dividing and selecting.
        reading: Statistics of reading, by role.
    """

    counts: StoreCounts = field(default_factory=StoreCounts)
    examples: int = 0
    selecting: SelectStatistics = field(default_factory=SelectStatistics)
    reading: dict[str, ReadStatistics] = field(default_factory=dict)

    def read(self) -> ReadStatistics:
        """Returns the statistics of reading by all roles."""
        total = ReadStatistics()
        for statistics in self.reading.values():
            total.add(statistics)
        return total

    def add(self, more: PipelineShare) -> None:
        """Adds what it did at another shard; `counts` are each shard's own."""
        self.examples += more.examples
        self.selecting.add(more.selecting)
        for role, statistics in more.reading.items():
            self.reading.setdefault(role, ReadStatistics()).add(statistics)


@dataclass
class ShardResult:
    """What a worker did at a shard; also a line of workers.jsonl.

    Attributes:
        shard: Number of the shard.
        attempt: Number of the attempt at it, from 1.
        outcome: `finished`; `failed`, by a mistake of the user's; `stopped`, if the run is to end;
            `spent`, if the worker's share of a budget is; or `died`.
        worker: Process and machine.
        seconds: Seconds that it took.
        peak_bytes: Most memory that the worker has had.
        pipelines: Share of each pipeline, by its place.
        error: Reason, unless it is finished.
        spent: Spending of the worker's readers since its last result, by role.
        reused: Names of plug-in classes without `depends_on` whose results the worker reused.
    """

    shard: int
    attempt: int = 1
    outcome: str = "finished"
    worker: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    pipelines: Mapping[int, PipelineShare] = field(default_factory=dict)
    error: str = ""
    spent: Mapping[str, Ledger] = field(default_factory=dict)
    reused: tuple[str, ...] = ()

    def row(self, names: Sequence[str], task: str) -> dict[str, JSON]:
        """Returns the line of workers.jsonl.

        Args:
            names: Names of the pipelines, by their places.
            task: Name of the task.
        """
        return {
            "task": task,
            "pipelines": [names[place] for place in self.pipelines] or [*names],
            "shard": self.shard,
            "attempt": self.attempt,
            "outcome": self.outcome,
            "worker": self.worker,
            "seconds": round(self.seconds, 3),
            "examples": sum(share.examples for share in self.pipelines.values()),
            "reads": sum(share.read().reads for share in self.pipelines.values()),
            "peak_bytes": self.peak_bytes,
        }
