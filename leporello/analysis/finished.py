"""Reads a run's directory: its jobs, and their finished examples together with the task's data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import merge
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache
from leporello.config import Config, PipelineSpec, load_config
from leporello.config.metrics import metrics_of
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import cache_directory, read_rows
from leporello.core.protocols import Task
from leporello.core.records import Example, Prediction
from leporello.engine.results.finished import (
    ExampleStatistics,
    FinishedRow,
    prediction_from_row,
)
from leporello.engine.task_examples import examples_of
from leporello.jobs.directory import RunDirectory, runs_in
from leporello.jobs.files import JobFiles
from leporello.jobs.manifest import named_files, readers_of
from leporello.metrics import Metric

_HINT = "restore the data, or run again with --update"


@dataclass(frozen=True)
class FinishedRun:
    """A run's directory; some of its examples may be unfinished."""

    directory: RunDirectory

    @classmethod
    def at(cls, path: Path | str) -> FinishedRun:
        """Returns the run in a directory; raises UserError if it has no run."""
        return cls(RunDirectory.of_run(path))

    @cached_property
    def config(self) -> Config:
        """The config of the run."""
        return load_config([self.directory.config])

    @cached_property
    def jobs(self) -> list[FinishedJob]:
        """Its jobs: every pipeline on every task."""
        signatures = self.directory.jobs().items()
        return [FinishedJob(self, *job, signature) for job, signature in signatures]

    def job(self, pipeline: str, task: str) -> FinishedJob:
        """Returns the job of a pipeline on a task."""
        return next(job for job in self.jobs if (job.pipeline, job.task) == (pipeline, task))

    @property
    def by_task(self) -> dict[str, list[FinishedJob]]:
        """Its jobs by task."""
        tasks = dict.fromkeys(job.task for job in self.jobs)
        return {task: [job for job in self.jobs if job.task == task] for task in tasks}

    def with_example(self, example_id: str) -> Iterator[tuple[FinishedJob, Example]]:
        """Yields each job whose task has this example, with the example; raises UserError."""
        self.directory.check_stores()
        ids: dict[str, None] = {}
        for job in self.jobs:
            for example in job.examples():
                ids[example.id] = None
                if example.id == example_id:
                    yield job, example
                    break
        if example_id not in ids:
            hint = did_you_mean(example_id, ids)
            raise UserError(f"{self.directory.path}: there is no example {example_id!r}{hint}")


def finished_runs(paths: Iterable[Path]) -> list[FinishedRun]:
    """Returns the runs in directories, and in folders of them, each once."""
    directories = dict.fromkeys(run.resolve() for path in paths for run in runs_in(path))
    return [*map(FinishedRun.at, directories)]


@dataclass(frozen=True)
class FinishedJob:
    """One pipeline on one task of a run."""

    run: FinishedRun
    pipeline: str
    task: str
    signature: Mapping[str, Any]  # everything that its results depend on, from the manifest

    @property
    def name(self) -> str:
        """Name of the job in messages."""
        return f"{self.pipeline} on {self.task}"

    @property
    def split(self) -> str:
        """Split of the task; empty if the task has none."""
        return str(self.signature["task"].get("split", ""))

    @property
    def reader(self) -> str:
        """Class and model of the pipeline's readers."""
        return readers_of(self.signature["pipeline"])

    @property
    def files(self) -> JobFiles:
        """Its files, which contain the finished examples."""
        return JobFiles(self.run.directory, self.pipeline, self.task)

    @property
    def point(self) -> PipelineSpec:
        """Specification of the pipeline."""
        return self.run.config.select([self.pipeline])[0]

    @cached_property
    def source(self) -> Task:
        """The task as an object."""
        task: Task = self.run.config.tasks[self.task].spec.build()
        return task

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """Metrics of the job by name, in the task's order."""
        return metrics_of(self.signature["task"].get("metrics") or self.source.metrics)

    @cached_property
    def merged(self) -> Mapping[str, Any]:
        """Content of its metrics.json; empty before the results are merged."""
        return self.files.read("metrics.json")

    @cached_property
    def statistics(self) -> dict[str, ExampleStatistics]:
        """Statistics of finished examples by id, in task order."""
        return {example.id: example for example in self.files.statistics()}

    @property
    def scored_by(self) -> list[str]:
        """Names of the metrics that scored its examples, in the task's order."""
        examples = self.statistics.values()
        return [*dict.fromkeys(name for example in examples for name in example.statistics)]

    @property
    def tuned(self) -> int:
        """Number of documents on which the pipeline's parameters were tuned."""
        return int(self.merged.get("tuned", 0))

    @property
    def sees_gold(self) -> bool:
        """Whether a stage used references or evidence."""
        return bool(self.merged.get("sees_gold"))

    @property
    def normalised(self) -> bool:
        """Whether answers were normalised for the metrics."""
        # Until 0.2, `normalised` was a parameter of the task.
        return bool(self.merged.get("normalised", self.signature["task"].get("normalised")))

    def changed_files(self) -> list[str]:
        """Returns files of its stages that have changed since the run, which may change prompts."""
        now, before = named_files(self.point), self.signature.get("files", {})
        return [file for file in {**now, **before} if now.get(file) != before.get(file)]

    def examples(self) -> Iterator[Example]:
        """Yields the task's examples after checking them, with documents that use the cache."""
        # Chunks come from the cache of the run, so that nothing is computed again (decision 25).
        cache = Cache(cache_directory())
        for example in examples_of(self.source, self.task):
            example.document.use_cache(cache)
            yield example

    def finished(self) -> Iterator[tuple[Example, FinishedRow]]:
        """Yields finished examples with their results; raises UserError for changed data."""
        for example, [row] in finished_examples([self]):
            if row:
                yield example, row

    def answers(self, count: int) -> Iterator[tuple[Example, Prediction]]:
        """Yields at most `count` examples with predictions, evenly spread over the task."""
        path = self.files.folder / "predictions.jsonl"
        total = sum(1 for _ in read_rows(path))
        numbers = {number * total // min(count, total) for number in range(min(count, total))}
        rows = (row for number, row in enumerate(read_rows(path)) if number in numbers)
        chosen = {row["id"]: prediction_from_row(row) for row in rows}
        for example in self.examples():
            if example.id in chosen:
                yield example, chosen[example.id]


def finished_examples(
    jobs: Sequence[FinishedJob],
) -> Iterator[tuple[Example, tuple[FinishedRow | None, ...]]]:
    """Yields examples of a task with the results of each job, None if a job has not finished it.

    Raises UserError if the data have changed.
    """
    examples = enumerate(jobs[0].examples())
    for number, rows in rows_by_number([job.files for job in jobs]):
        example = next((example for place, example in examples if place == number), None)
        for job, row in zip(jobs, rows, strict=True):
            if row and (example is None or example.id != row.id):
                raise UserError(
                    f"{job.name}: the data have changed since the run: example {row.id!r} is"
                    f" missing or out of order; {_HINT}"
                )
            if row and example:
                check_document(job.name, example, row)
        if example:
            yield example, rows


def rows_by_number(
    all_files: Sequence[JobFiles],
) -> Iterator[tuple[int, tuple[FinishedRow | None, ...]]]:
    """Yields the numbers of examples that any job has finished, with the row of each job."""

    def numbered(place: int, files: JobFiles) -> Iterator[tuple[int, int, FinishedRow]]:
        return ((row.number, place, row) for row in files.examples())

    # All are in task order, so that merging needs only one row per job in memory.
    merged = merge(*map(numbered, count(), all_files), key=itemgetter(0))
    for number, group in groupby(merged, key=itemgetter(0)):
        rows = {place: row for _, place, row in group}
        yield number, tuple(map(rows.get, range(len(all_files))))


def check_document(name: str, example: Example, finished: FinishedRow) -> None:
    """Raises UserError if the document of an example has another text than in the run."""
    if finished.statistics.document not in ("", example.document.sha256):
        raise UserError(
            f"{name}: document {example.document.id!r} has changed since the run; {_HINT}"
        )
