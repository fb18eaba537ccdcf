"""Goes through a run and its tasks' data side by side, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedExamples, check_document
from leporello.analysis.funnel.example_trace import (
    ChunkCover,
    ExampleTrace,
    Gold,
    gold_of,
    trace_example,
)
from leporello.cache.store import Cache
from leporello.config import Config, load_config
from leporello.config.metrics import metrics_of
from leporello.config.specs import StageFactory
from leporello.core.calls.contracts import asks_question
from leporello.core.calls.memory import memo_key
from leporello.core.errors import UserError
from leporello.core.notes import collect_notes
from leporello.core.protocols import Chunker, Task
from leporello.core.records import Example
from leporello.engine.failures import ExampleError
from leporello.engine.selection import by_document, divided
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import ExampleFiles, JobFiles
from leporello.metrics import Metric
from leporello.models.locate import cache_directory


def trace_examples(run: Path) -> Iterator[ExampleTrace]:
    """Yields what became of every finished example, task by task, for all pipelines at once.

    The data of a task are read once, as far as any pipeline has come, and nothing is held of them.
    What chunkers make of a document is taken from the cache, or made once for all that need it.

    Raises:
        UserError: No run lies there, or its tasks' data are not what they were.
    """
    directory = RunDirectory.of_run(run)
    config, jobs = load_config([directory.config]), directory.jobs()
    for task in dict.fromkeys(task for _, task in jobs):
        pipelines = [pipeline for pipeline, other in jobs if other == task]
        yield from _of_task(directory, config, task, pipelines)


def scored_by(signature: Mapping[str, Any], source: Task) -> dict[str, Metric]:
    """Returns the metrics that a job was scored by, by name, in the task's order."""
    return metrics_of(signature["task"].get("metrics") or source.metrics)


def answer_score(finished: ExampleFiles, metrics: Mapping[str, Metric]) -> float | None:
    """Returns the score by the first metric that looks at answers; None where there is none."""
    name = next((name for name in metrics if not name.startswith("recall")), "")
    statistics = finished.statistics.statistics.get(name)
    return None if statistics is None else metrics[name].score(statistics)


def _of_task(
    directory: RunDirectory, config: Config, task: str, pipelines: Sequence[str]
) -> Iterator[ExampleTrace]:
    source = config.tasks[task].spec.build()
    signatures = {pipeline: directory.jobs()[pipeline, task] for pipeline in pipelines}
    metrics = {name: scored_by(signature, source) for name, signature in signatures.items()}
    jobs = [*_job_readers(directory, config, task, metrics)]
    every = examples_of(source, task)
    # Behind the last row of the last job the data are not read on.
    examples = takewhile(lambda _: any(job.rows.next for job in jobs), every)
    cache = Cache(cache_directory())
    for _, group in by_document(examples):
        group[0].document.use_cache(cache)
        covers = _ChunkCovers()
        for example in group:
            results = [(job, job.rows.take(example.id)) for job in jobs]
            gold = gold_of(example) if any(result for _, result in results) else None
            yield from (
                job.trace(example, gold, result, covers) for job, result in results if result
            )
    for job in jobs:
        job.rows.check_end(f"{directory.path}: {task}")


def _job_readers(
    directory: RunDirectory,
    config: Config,
    task: str,
    metrics: Mapping[str, Mapping[str, Metric]],
) -> Iterator[_JobReader]:
    factory = StageFactory()
    for pipeline in metrics:
        [point] = config.select([pipeline])
        chunker = factory.stage(point.stages["chunker"])
        rows = FinishedExamples(JobFiles(directory, pipeline, task))
        yield _JobReader((pipeline, task), chunker, rows, metrics[pipeline])


@dataclass
class _ChunkCovers:
    """The chunks of one document, by what made them."""

    _by_chunker: dict[Any, ChunkCover] = field(default_factory=dict)

    def of(self, chunker: Chunker, example: Example) -> ChunkCover:
        key = (memo_key(chunker), example.question if asks_question(chunker) else None)
        if key not in self._by_chunker:
            try:
                with collect_notes():  # the run has the notes, too
                    chunks = divided(chunker, example)
            except ExampleError as error:
                message = f"the chunker fails now, though it did not in the run: {error.message}"
                raise UserError(f"example {example.id!r}: {message}") from error
            self._by_chunker[key] = ChunkCover.of(chunk.span for chunk in chunks)
        return self._by_chunker[key]


@dataclass(frozen=True)
class _JobReader:
    """One pipeline on one task."""

    job: tuple[str, str]
    chunker: Chunker
    rows: FinishedExamples
    metrics: Mapping[str, Metric]

    def trace(
        self, example: Example, gold: Gold | None, finished: ExampleFiles, covers: _ChunkCovers
    ) -> ExampleTrace:
        """Returns what became of an example."""
        cover = ChunkCover.of(())
        if gold:
            check_document(self.job[1], example, finished)
        if gold and finished.prediction:
            cover = covers.of(self.chunker, example)
        score = answer_score(finished, self.metrics)
        return trace_example(self.job, example, gold, cover, finished, score=score)
