"""Plan of a run: finished, cached and remaining work, and its duration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from leporello.cache.fingerprint import fingerprint
from leporello.cache.store import Cache
from leporello.config import Spec
from leporello.config.placement import Placement
from leporello.config.specs import StageFactory
from leporello.core.calls.contracts import asks_question, indexers
from leporello.core.calls.derived import cached_passages
from leporello.core.calls.segments import cached_chunks, index_keys
from leporello.core.records import Chunk, Example
from leporello.engine.enriching import passage_stages
from leporello.engine.selection import by_document
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, changes, job_directory
from leporello.models.locate import cache_directory
from leporello.runs.estimate import WorkEstimate, reading_key, selecting_key, timed_rates

_SHOWN = 60  # characters of a parameter


@dataclass(slots=True)
class StagePlan:
    """Chunks, passages or an index, computed once for all pipelines that need them."""

    kind: str  # `chunks`, `passages` or `index`
    stage: str  # the stage that computes it, as a call of its class
    # Number of times it is needed: once per document, or once per example if the chunker takes the
    # question.
    needed: int = 0
    kept: int = 0  # number of these that are cached
    pipelines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class PlannedJob:
    """Planned work of one pipeline on one task."""

    pipeline: str
    task: str
    directory: Path
    # Stages, each as a call of its class with the parameters from the config.
    stages: tuple[str, ...]
    placement: Placement
    # Differences from an earlier run in this directory; if there are any, the run requires
    # `--update`.
    changed: tuple[str, ...]
    documents: int = 0  # number of documents with unfinished examples
    examples: int = 0
    done: int = 0  # number of examples that an earlier run has finished, including failures
    failed: int = 0  # number of these that failed; they are run again once all others are finished
    characters: int = 0  # number of characters of the documents with unfinished examples
    steps: tuple[int, ...] = ()  # indices into the plan's steps
    calls: int = 0  # number of remaining reads, extrapolated
    # Number of input tokens of these reads, extrapolated; 0 if the reader counts none.
    tokens: int = 0
    # Whether calls and tokens come from trying examples up to their first reads, rather than from
    # finished examples.
    at_least: bool = False
    # Seconds of chunking and retrieval, from past timings; None without timings.
    select_seconds: float | None = None
    read_seconds: float | None = None  # seconds of reading, from past timings; None without timings


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A plan over all pipelines and tasks."""

    # Steps that compute chunks, passages and indexes; shared steps are listed once.
    steps: tuple[StagePlan, ...]
    jobs: tuple[PlannedJob, ...]  # planned jobs, one per pipeline and task


def plan(jobs: Sequence[Job], out: Path | None = None, limit: int | None = None) -> RunPlan:
    """Counts the remaining work after reading the tasks' data, earlier results and the cache.

    Calls and tokens are extrapolated from a sample of the documents with unfinished examples.
    """
    directory, factory = RunDirectory(job_directory(jobs, out)), StageFactory()
    directory.check_version()
    directory.check_stores()
    run_counter = _RunCounter(Cache(cache_directory()), limit)
    planned: dict[str, PlannedJob] = {}
    for task in dict.fromkeys(job.task.name for job in jobs):
        counters = [_JobCounter(job, directory, factory) for job in jobs if job.task.name == task]
        run_counter.count(counters)
        planned |= {counter.job.name: counter.planned for counter in counters}
    return RunPlan(tuple(run_counter.steps.values()), tuple(planned[job.name] for job in jobs))


class _JobCounter:
    """A job with its counts."""

    def __init__(self, job: Job, directory: RunDirectory, factory: StageFactory) -> None:
        self.job, self.stages = job, factory.build(job.pipeline)
        self.files = JobFiles(directory, job.pipeline.name, job.task.name)
        self.estimate = WorkEstimate(self.stages)
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

    def count(self, numbers: range) -> bool:
        """Counts the examples on a document; returns whether any is unfinished."""
        failures = [self.done[number] for number in numbers if number in self.done]
        self.planned.examples += len(numbers)
        self.planned.done += len(failures)
        self.planned.failed += sum(failures)
        return len(failures) < len(numbers)


class _RunCounter:
    """Counts the remaining work in one pass over each task's documents."""

    def __init__(self, cache: Cache, limit: int | None) -> None:
        self.cache, self.limit = cache, limit
        self.steps: dict[tuple[str, ...], StagePlan] = {}
        self._rates = timed_rates(cache.root)

    def count(self, jobs: Sequence[_JobCounter]) -> None:
        """Counts the remaining work of jobs on one task."""
        task = jobs[0].job
        examples = islice(examples_of(task.source, task.task.name), self.limit)
        for first, group in by_document(examples):
            numbers = range(first, first + len(group))
            group[0].document.use_cache(self.cache)
            counted_keys: set[tuple[str, ...]] = set()
            for job in jobs:
                if job.count(numbers):
                    self._count_document(job, group, counted_keys)
        for job in jobs:
            self._estimate(job)

    def _count_document(
        self, job: _JobCounter, group: Sequence[Example], counted_keys: set[tuple[str, ...]]
    ) -> None:
        planned, document = job.planned, group[0].document
        planned.documents += 1
        planned.characters += len(document.text)
        keys = []
        for key, cached in self._derived(job, group):
            step = self.steps.setdefault(key, StagePlan(key[0], key[1]))
            keys.append([*self.steps].index(key))
            if planned.pipeline not in step.pipelines:
                step.pipelines.append(planned.pipeline)
            if key not in counted_keys:
                counted_keys.add(key)
                step.needed += len(cached)
                step.kept += sum(cached)
        planned.steps = tuple(keys)
        if valid := [example for example in group if not example.fault]:
            job.estimate.offer(valid)

    def _derived(
        self, job: _JobCounter, group: Sequence[Example]
    ) -> Iterator[tuple[tuple[str, ...], list[bool]]]:
        """Yields the results that a document needs, and whether each of them is cached.

        A result is named by its kind, its stage and the stages before it.
        """
        chunker, retriever = job.stages.chunker, job.stages.retriever
        questions = [e.question for e in group] if asks_question(chunker) else [None]
        document, task = group[0].document, job.job.task.name
        chunk_lists = [cached_chunks(document, chunker, question) for question in questions]
        label = _label(chunker)
        yield ("chunks", label, task), [chunks is not None for chunks in chunk_lists]
        if job.stages.enricher is not None:
            enrichers = passage_stages(job.stages)
            chunk_lists = [c and cached_passages(c, enrichers) for c in chunk_lists]
            label = " of ".join((*map(_label, enrichers), label))
            yield ("passages", label, task), [chunks is not None for chunks in chunk_lists]
            job.estimate.enriched &= None not in chunk_lists
        for indexer in indexers(retriever):
            cached = [
                chunks is not None and self._has_index(indexer, chunks) for chunks in chunk_lists
            ]
            yield ("index", _label(indexer), label, task), cached

    def _has_index(self, retriever: Any, chunks: tuple[Chunk, ...]) -> bool:  # noqa: ANN401 -- a stage
        if not chunks:
            return True
        keys = index_keys(chunks[0].document, retriever, chunks, fingerprint)
        return all(key is not None and self.cache.holds(kind, key) for kind, key in keys)

    def _estimate(self, job: _JobCounter) -> None:
        planned, pipeline = job.planned, job.job.pipeline
        remaining = planned.examples - planned.done
        estimate = job.estimate
        estimate.look(job.files if job.done else None)
        planned.calls = estimate.extrapolate(estimate.reads, remaining)
        planned.tokens = estimate.extrapolate(estimate.tokens, remaining)
        planned.at_least = estimate.tried
        planned.select_seconds = self._seconds(
            selecting_key(pipeline), "character", planned.characters
        )
        reading = reading_key(pipeline)
        by_token = self._seconds(reading, "input token", planned.tokens) if planned.tokens else None
        by_read = self._seconds(reading, "read", planned.calls)
        # By tokens if they are known: reads of one pipeline differ in length by a hundred times.
        planned.read_seconds = by_read if by_token is None else by_token

    def _seconds(self, key: str, unit: str, count: int) -> float | None:
        seconds = self._rates.get((key, unit))
        return None if seconds is None else seconds * count


def _label(stage: object) -> str:
    """Returns a stage as Python source, without parameters that cannot change chunks or index."""
    description: Any = fingerprint(stage, getattr(type(stage), "search_only", ()))
    return type(stage).__name__ if description is None else _call({**description})


def _call(stage: Any) -> str:  # noqa: ANN401 -- JSON
    """Formats the JSON of a stage as a call of its class."""
    if isinstance(stage, list):
        return f"[{', '.join(map(_call, stage))}]"
    if not isinstance(stage, dict) or "class" not in stage:
        text = repr(stage)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    params = stage.get("parameters", {n: value for n, value in stage.items() if n != "class"})
    name = stage["class"].rpartition(":")[2].rpartition(".")[2]
    return f"{name}({', '.join(f'{n}={_call(value)}' for n, value in params.items())})"


def _as_configured(spec: Spec) -> str:
    """Returns a stage as a call with the parameters from the config, without defaults."""
    resolved = spec.resolved()
    return _call({n: value for n, value in resolved.items() if n == "class" or n in spec.params})
