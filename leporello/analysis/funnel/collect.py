"""Goes through a run and its tasks' data side by side, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

from leporello.analysis.funnel.example_trace import (
    ChunkCover,
    ExampleResult,
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
from leporello.core.files import read_rows
from leporello.core.notes import collect_notes
from leporello.core.protocols import Chunker
from leporello.core.records import Example, Prediction
from leporello.engine.failures import ExampleError
from leporello.engine.journal.serialization import (
    calls_from_row,
    empty_prediction,
    prediction_from_row,
)
from leporello.engine.selection import divided
from leporello.engine.task_examples import by_document, examples_of
from leporello.jobs.checksums import check_results
from leporello.jobs.directory import RunDirectory
from leporello.metrics import GoldError, Metric
from leporello.metrics.own import MetricError
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


def answer_metric(names: Sequence[str]) -> str:
    """Returns the first of a task's metrics that looks at answers; empty if there is none."""
    return next((name for name in names if not name.startswith("recall")), "")


def _of_task(
    directory: RunDirectory, config: Config, task: str, pipelines: Sequence[str]
) -> Iterator[ExampleTrace]:
    source = config.tasks[task].spec.build()
    metrics = metrics_of(config.tasks[task].metrics_of(source))
    counting = [metrics[name] for name in filter(None, [answer_metric([*metrics])])]
    jobs = [*_job_readers(directory, config, task, pipelines, counting)]
    every = examples_of(source, task)
    # Behind the last row of the last job the data are not read on.
    examples = takewhile(lambda _: any(job.rows.left for job in jobs), every)
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
        if left := job.rows.left:
            raise UserError(
                f"{directory.path}: the data of task {task!r} are not what they were: they have no"
                f" example {left!r} in its place; put the data back, or run again with --update"
            )


def _job_readers(
    directory: RunDirectory,
    config: Config,
    task: str,
    pipelines: Sequence[str],
    metrics: Sequence[Metric],
) -> Iterator[_JobReader]:
    factory = StageFactory()
    for pipeline in pipelines:
        [point] = config.select([pipeline])
        chunker = factory.stage(point.stages["chunker"])
        yield _JobReader(
            (pipeline, task), chunker, _FunnelRows.of(directory.results(pipeline, task)), metrics
        )


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


@dataclass
class _FunnelRows:
    """What one pipeline left of the examples of a task, in task order."""

    predictions: Iterator[Mapping[str, Any]]
    calls: Iterator[Mapping[str, Any]]
    failures: Iterator[Mapping[str, Any]]
    _done: Mapping[str, Any] | None = None
    _failed: Mapping[str, Any] | None = None

    @staticmethod
    def of(folder: Path) -> _FunnelRows:
        """Opens the files; a process that was killed may not have made them yet."""
        paths = [folder / f"{name}.jsonl" for name in ("predictions", "calls", "failures")]
        check_results(folder, *(path.name for path in paths))
        if not all(path.exists() for path in paths):
            return _FunnelRows(iter(()), iter(()), iter(()))
        predictions, calls, failures = map(read_rows, paths)
        return _FunnelRows(
            predictions, calls, failures, next(predictions, None), next(failures, None)
        )

    @property
    def left(self) -> str:
        """The id of an example that is to come; empty at the end."""
        row = self._done or self._failed
        return row["id"] if row else ""

    def take(self, example_id: str) -> ExampleResult | None:
        """Returns what is left of the example, if it is the next one."""
        if self._done and self._done["id"] == example_id:
            row, calls = self._done, next(self.calls)
            self._done = next(self.predictions, None)
            return ExampleResult(
                example_id, prediction_from_row(row), calls_from_row(calls["calls"])
            )
        if self._failed and self._failed["id"] == example_id:
            row, self._failed = self._failed, next(self.failures, None)
            return ExampleResult(example_id, None, failed=row["stage"])
        return None


@dataclass(frozen=True)
class _JobReader:
    """One pipeline on one task."""

    job: tuple[str, str]
    chunker: Chunker
    rows: _FunnelRows
    metrics: Sequence[Metric]  # the one of answers, if there is any

    def trace(
        self, example: Example, gold: Gold | None, finished: ExampleResult, covers: _ChunkCovers
    ) -> ExampleTrace:
        """Returns what became of an example."""
        cover = ChunkCover.of(())
        if gold:
            _check(self.job[1], example, finished)
            score = self._score(example, finished.prediction or empty_prediction(example))
            finished = replace(finished, score=score)
        if gold and finished.prediction:
            cover = covers.of(self.chunker, example)
        return trace_example(self.job, example, gold, cover, finished)

    def _score(self, example: Example, prediction: Prediction) -> float | None:
        for metric in self.metrics:
            try:
                statistics = metric.statistics(prediction, example)
            except (GoldError, MetricError):  # for which the run failed it, or told of it
                return None
            return None if statistics is None else metric.score(statistics)
        return None


def _check(task: str, example: Example, finished: ExampleResult) -> None:
    prediction = finished.prediction
    if prediction and prediction.document_sha256 != example.document.sha256:
        raise UserError(
            f"{task}: document {example.document.id!r} is not what it was when the run was made;"
            " put the data back, or run again with --update"
        )
