"""What a run would do, without doing it: what is done, what is cached, what is left, how long."""

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
from leporello.jobs.timings import reading_key, selecting_key, timed_rates
from leporello.models.locate import cache_directory
from leporello.runs.estimate import WorkEstimate

_SHOWN = 60  # characters of a parameter


@dataclass(slots=True)
class StagePlan:
    """Something that is derived from documents, once for all pipelines that need it.

    Attributes:
        kind: `chunks` or `index`.
        stage: The stage that derives it, as a call of its class.
        needed: Number of times that it is needed: once a document, or once an example where the
            chunker asks for the question.
        kept: Number of these that the cache has.
        pipelines: Names of the pipelines that need it.
    """

    kind: str
    stage: str
    needed: int = 0
    kept: int = 0
    pipelines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class PlannedJob:
    """What one pipeline would do on one task.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        directory: Directory of the run.
        stages: Stages, each as a call of its class with the parameters that the config gives.
        placement: Placement of the work.
        changed: Differences from what an earlier run there was made with; such a run refuses to go
            on without `--update`.
        documents: Number of documents that have anything left to do.
        examples: Number of all examples.
        done: Number of examples that an earlier run has finished, failed ones included.
        failed: Number of these that failed; they are tried again once nothing else is left.
        characters: Number of characters of the documents that have anything left to do.
        steps: Indices into the plan's steps, of what is derived from documents.
        calls: Number of reads left, extrapolated.
        tokens: Number of input tokens of these reads, extrapolated; 0 where the reader counts none.
        at_least: Whether calls and tokens were told by trying some examples as far as their first
            reads, rather than by examples that are finished.
        select_seconds: Seconds of dividing and selecting, from past timings; None where there are
            none.
        read_seconds: Seconds of reading, from past timings; None where there are none.
    """

    pipeline: str
    task: str
    directory: Path
    stages: tuple[str, ...]
    placement: Placement
    changed: tuple[str, ...]
    documents: int = 0
    examples: int = 0
    done: int = 0
    failed: int = 0
    characters: int = 0
    steps: tuple[int, ...] = ()
    calls: int = 0
    tokens: int = 0
    at_least: bool = False
    select_seconds: float | None = None
    read_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A plan over all pipelines and tasks.

    Attributes:
        steps: Steps that derive something from documents; those that pipelines share stand once.
        jobs: Planned jobs, one a pipeline and task.
    """

    steps: tuple[StagePlan, ...]
    jobs: tuple[PlannedJob, ...]


def plan(jobs: Sequence[Job], out: Path | None = None, limit: int | None = None) -> RunPlan:
    """Reads the tasks' data, what earlier runs left and what is cached, and counts what remains.

    Calls and tokens are extrapolated from a sample of the documents that have anything left.

    Raises:
        UserError: A mistake of the user's.
    """
    directory, factory = RunDirectory(job_directory(jobs, out)), StageFactory()
    directory.check_version()
    directory.check_stores()
    planner = _Planner(Cache(cache_directory()), limit)
    planned: dict[str, PlannedJob] = {}
    for task in dict.fromkeys(job.task.name for job in jobs):
        of_task = [_Planned(job, directory, factory) for job in jobs if job.task.name == task]
        planner.count(of_task)
        planned |= {counted.job.name: counted.planned for counted in of_task}
    return RunPlan(tuple(planner.steps.values()), tuple(planned[job.name] for job in jobs))


class _Planned:
    """A job, and what has been counted of it."""

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
        # What was made with something else would be made again.
        earlier = () if self.planned.changed else self.files.statistics()
        self.done = {example.number: example.failure is not None for example in earlier}

    def count(self, numbers: range) -> bool:
        """Counts the examples on a document; returns whether any is left."""
        done = [self.done[number] for number in numbers if number in self.done]
        self.planned.examples += len(numbers)
        self.planned.done += len(done)
        self.planned.failed += sum(done)
        return len(done) < len(numbers)


class _Planner:
    """Counts over one stream of documents a task."""

    def __init__(self, cache: Cache, limit: int | None) -> None:
        self.cache, self.limit = cache, limit
        self.steps: dict[tuple[str, ...], StagePlan] = {}
        self._rates = timed_rates(cache.root)

    def count(self, jobs: Sequence[_Planned]) -> None:
        """Counts what jobs on one task have left."""
        task = jobs[0].job
        examples = islice(examples_of(task.source, task.task.name), self.limit)
        for first, group in by_document(examples):
            numbers = range(first, first + len(group))
            group[0].document.use_cache(self.cache)
            counted: set[tuple[str, ...]] = set()
            for job in jobs:
                if job.count(numbers):
                    self._count_document(job, group, counted)
        for job in jobs:
            self._estimate(job)

    def _count_document(
        self, job: _Planned, group: Sequence[Example], counted: set[tuple[str, ...]]
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
            if key not in counted:
                counted.add(key)
                step.needed += len(cached)
                step.kept += sum(cached)
        planned.steps = tuple(keys)
        sound = [example for example in group if not example.fault]
        if sound:
            job.estimate.offer(sound)

    def _derived(
        self, job: _Planned, group: Sequence[Example]
    ) -> Iterator[tuple[tuple[str, ...], list[bool]]]:
        """Yields what a document needs: kind, stage and those before it; whether each is cached."""
        chunker, retriever = job.stages.chunker, job.stages.retriever
        asks = asks_question(chunker)
        questions = [e.question for e in group] if asks else [None]
        document, task = group[0].document, job.job.task.name
        chunk_lists = [cached_chunks(document, chunker, question) for question in questions]
        label = _label(chunker)
        yield ("chunks", label, task), [chunks is not None for chunks in chunk_lists]
        if job.stages.enricher is not None:
            used = passage_stages(job.stages)
            chunk_lists = [c and cached_passages(c, used) for c in chunk_lists]
            label = " of ".join((*map(_label, used), label))
            yield ("passages", label, task), [chunks is not None for chunks in chunk_lists]
            job.estimate.enriched &= None not in chunk_lists
        for part in indexers(retriever):
            cached = [
                chunks is not None and self._has_index(part, chunks) for chunks in chunk_lists
            ]
            yield ("index", _label(part), label, task), cached

    def _has_index(self, retriever: Any, chunks: tuple[Chunk, ...]) -> bool:  # noqa: ANN401 -- a stage
        if not chunks:
            return True
        keys = index_keys(chunks[0].document, retriever, chunks, fingerprint)
        return all(key is not None and self.cache.holds(kind, key) for kind, key in keys)

    def _estimate(self, job: _Planned) -> None:
        planned, pipeline = job.planned, job.job.pipeline
        left = planned.examples - planned.done
        estimate = job.estimate
        estimate.look(job.files if job.done else None)
        planned.calls = estimate.of(estimate.reads, left)
        planned.tokens = estimate.of(estimate.tokens, left)
        planned.at_least = estimate.tried
        planned.select_seconds = self._seconds(
            selecting_key(pipeline), "character", planned.characters
        )
        reading = reading_key(pipeline)
        by_token = self._seconds(reading, "input token", planned.tokens) if planned.tokens else None
        by_read = self._seconds(reading, "read", planned.calls)
        planned.read_seconds = by_read if by_token is None else by_token

    def _seconds(self, key: str, unit: str, count: int) -> float | None:
        seconds = self._rates.get((key, unit))
        return None if seconds is None else seconds * count


def _label(stage: object) -> str:
    """Returns a stage as an index or chunks depend on it; what else it is given is left out."""
    description: Any = fingerprint(stage, getattr(type(stage), "search_only", ()))
    return type(stage).__name__ if description is None else _call({**description})


def _call(stage: Any) -> str:  # noqa: ANN401 -- JSON
    """Returns a stage, written out as JSON, as a call of its class."""
    if isinstance(stage, list):
        return f"[{', '.join(map(_call, stage))}]"
    if not isinstance(stage, dict) or "class" not in stage:
        text = repr(stage)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    params = stage.get("parameters", {n: value for n, value in stage.items() if n != "class"})
    name = stage["class"].rpartition(":")[2].rpartition(".")[2]
    return f"{name}({', '.join(f'{n}={_call(value)}' for n, value in params.items())})"


def _as_configured(spec: Spec) -> str:
    """Returns a stage with the parameters that the config gives; defaults are left out."""
    resolved = spec.resolved()
    return _call({n: value for n, value in resolved.items() if n == "class" or n in spec.params})
