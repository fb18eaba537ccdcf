"""Messages between executors and workers, and the pipelines that a worker builds from them."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Self

from leporello.cache.source_code import source_hash
from leporello.cache.store import Cache
from leporello.config import PipelineSpec, Spec, TaskSpec
from leporello.config.metrics import metrics_of, own_metrics
from leporello.core.calls.budget import Ledger, SharedBudget
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import JSON
from leporello.engine.database import StoreCounts
from leporello.engine.failures import OVERDUE, TRIES, Phase
from leporello.engine.limits import Limits
from leporello.engine.reading import ReadStatistics
from leporello.engine.task_examples import no_answer_of, normalizer_of
from leporello.jobs.directory import RunDirectory
from leporello.jobs.shards import Shard, TaskReader
from leporello.metrics.protocol import is_later


@dataclass(frozen=True, slots=True)
class JobGroupSpec:
    """Pipelines that run together on one task, with one reader."""

    pipelines: Sequence[PipelineSpec]  # other objects refer to them by index
    runs: Sequence[str]  # hash of the inputs that determine the results, for each pipeline
    task: TaskSpec
    directory: RunDirectory
    limits: Limits
    cache: Path | None  # directory of the cache; None disables caching
    selectors: int  # number of processes per worker that chunk and retrieve ahead of its reader
    # Task as an object, which stays in this process. Training validates on a part of a declared
    # task, which no other process could build from `task`.
    built: Task | None = None
    metrics: Sequence[MetricEntry] = ()
    sources: Mapping[str, str] = field(default_factory=dict)  # `source_hashes` in the driver
    # Seconds between a worker's reports of its progress.
    report_every: float = 0.2  # looks smooth; a report per example would slow down short ones

    def all_specs(self) -> Iterator[Spec]:
        """Yields the specs of stages, task and plug-in metrics, including nested ones."""
        for pipeline in self.pipelines:
            yield from pipeline.all_specs()
        for root in (self.task.spec, *own_metrics(self.metrics)):
            yield from root.all_specs()

    def source_hashes(self) -> dict[str, str]:
        """Returns the hash of the source code of each class, by its name."""
        return {spec.name: source_hash(spec.cls) for spec in self.all_specs()}

    def reason_to_supervise(self) -> str:
        """Returns why the batch must run in a process that can be killed; empty if it does not."""
        if sys.platform == "win32":  # workers are not supported there
            return ""
        # A plug-in can end its process: `os._exit(0)` once ended a run with status 0 and no record
        # (decision 40). Our own classes do not, and a worker costs about one second of each run.
        foreign = (
            s.name for s in self.all_specs() if not s.cls.__module__.startswith("leporello.")
        )
        if name := next(foreign, ""):
            return f"{name} is not a class of Leporello"
        # C code ignores Python's signals, so only the end of its process stops it.
        limited = self.limits.example_timeout is not None
        return "a time limit requires a process that can be killed" if limited else ""


@dataclass(frozen=True, slots=True)
class Death:
    """Death of a worker."""

    cause: str
    shard: int = -1  # number of the shard of the operation that it started last
    phase: Phase = ()  # this operation; empty if it is unknown


@dataclass(frozen=True, slots=True)
class ShardOrder:
    """A shard for a worker to run."""

    shard: Shard
    pipelines: tuple[int, ...]  # indices of the pipelines with unfinished examples
    sizes: Mapping[str, int] = field(default_factory=dict)  # micro-batch sizes of the reader
    retry: bool = False  # whether failed examples run again
    budgets: Mapping[str, SharedBudget] = field(default_factory=dict)  # of all workers, by role
    attempt: int = 1  # number of the attempt, from 1
    cause: str = ""  # cause of death of the last worker that ran the shard; empty if none has died
    # Number of deaths that count, by the operation that was started last.
    deaths: Counter[Phase] = field(default_factory=Counter)

    def after(self, death: Death, *, is_alone: bool) -> Self:
        """Returns the order for the next worker; `is_alone` is whether the worker had no other."""
        deaths, phase = self.deaths.copy(), death.phase if death.shard == self.shard.number else ()
        # A call that exceeded its limit would do so again: no retry. With several open shards,
        # which of them it belongs to is unknown.
        blame = TRIES if death.cause == OVERDUE and is_alone else 1
        # Without blame if another shard's operation was the last; its reads run one at a time, too.
        deaths[phase] += blame if phase or not death.phase else 0
        return replace(self, attempt=self.attempt + 1, cause=death.cause, deaths=deaths)


# Asks a worker for the micro-batch sizes that its readers determine, which takes their models.
FIND_SIZES = ShardOrder(Shard(-1, 0, 0, ()), ())


@cache  # a stage may replace functions of `os` later
def this_worker() -> str:
    """Returns the name of this process and its machine."""
    return f"{os.getpid()}@{platform.node()}"


@dataclass
class PipelineShare:
    """Share of one pipeline in the result of a shard."""

    counts: StoreCounts = field(default_factory=StoreCounts)  # of the shard, from all processes
    examples: int = 0  # number of examples that this worker finished
    documents: int = 0  # number of documents that it searched
    characters: int = 0  # number of characters of these documents
    # Seconds that it chunked and retrieved; work that pipelines share counts for the first.
    seconds: float = 0.0
    reading: dict[str, ReadStatistics] = field(default_factory=dict)  # statistics of reads, by role

    def read(self) -> ReadStatistics:
        """Returns the statistics of the reads of all roles."""
        total = ReadStatistics()
        for statistics in self.reading.values():
            total.add(statistics)
        return total

    def add(self, other: Self) -> None:
        """Adds the statistics of another shard, but not its `counts`."""
        for name in ("examples", "documents", "characters", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for role, statistics in other.reading.items():
            self.reading.setdefault(role, ReadStatistics()).add(statistics)


@dataclass
class ShardResult:
    """Result of a worker for a shard; also a line of workers.jsonl."""

    shard: int
    attempt: int = 1  # number of the attempt, from 1
    # `finished`; `failed` after a mistake of the user; `stopped` if the run ends; `spent` if the
    # worker's share of a budget is spent; or `died`.
    outcome: str = "finished"
    worker: str = field(default_factory=this_worker)
    seconds: float = 0.0
    pipelines: Mapping[int, PipelineShare] = field(default_factory=dict)  # shares, by index
    error: str = ""  # reason, unless the shard is finished
    spent: Mapping[str, Ledger] = field(default_factory=dict)  # since its last result, by role
    sizes: Mapping[str, int] = field(default_factory=dict)  # answer to `FIND_SIZES`

    def row(self, names: Sequence[str], task: str) -> dict[str, JSON]:
        """Returns the line of workers.jsonl, with the names of pipelines and task."""
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
        }


class Pipelines:
    """Pipelines of a batch, and the task's documents."""

    def __init__(self, spec: JobGroupSpec) -> None:
        """Builds the pipelines; models load on first use."""
        self.spec = spec
        self._check_sources()
        source = spec.built or spec.task.spec.build()
        self.directory = spec.directory.on_worker()
        all_metrics = metrics_of(spec.metrics).items()
        self.metrics = {name: metric for name, metric in all_metrics if not is_later(metric)}
        # Pipelines of a sweep share a model in memory.
        built, no_answer = dict[str, Any](), no_answer_of(source)
        self.stages = [replace(p.build(built), no_answer=no_answer) for p in spec.pipelines]
        self.normalisers = [normalizer_of(source, wanted=p.normalised) for p in spec.pipelines]
        self.tasks = TaskReader(source, spec.task.name)
        self.cache = Cache(spec.cache) if spec.cache else None

    def _check_sources(self) -> None:
        hashes = self.spec.source_hashes()
        for name, expected in self.spec.sources.items():
            # A file edited during a run would give shards of one run different code.
            if hashes[name] != expected:
                raise UserError(
                    f"{name} changed during the run; use --update to run again what depends on it"
                )
