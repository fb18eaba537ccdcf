"""Joins the results of each pipeline with the task's data, and collects traces of the examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from leporello.analysis.example_trace import ExampleTrace
from leporello.analysis.finished import FinishedExamples, check_document
from leporello.analysis.funnel import trace_examples
from leporello.core.errors import UserError
from leporello.core.records import Example
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import ExampleFiles, JobFiles

Row = ExampleFiles


@dataclass(frozen=True, slots=True)
class JobRows:
    """One pipeline on one task of a run."""

    label: str
    run: Path
    pipeline: str
    task: str
    name: str  # short label in the report: `#1` for a point of a sweep

    @property
    def key(self) -> tuple[Path, str, str]:
        """Unique key of the job."""
        return self.run, self.pipeline, self.task

    @property
    def files(self) -> JobFiles:
        """Files of the job, which contain its finished examples."""
        return JobFiles(RunDirectory(self.run), self.pipeline, self.task)


@dataclass(frozen=True, slots=True)
class JoinedExample:
    """One example with the results of each job."""

    id: str
    example: Example | None  # Example; None if the data are missing
    rows: tuple[Row | None, ...]  # rows, one per job; None if the job has not finished the example


def with_data(jobs: Sequence[JobRows], examples: Iterable[Example]) -> Iterator[JoinedExample]:
    """Yields the examples that any job has finished, with their documents, in task order.

    Raises:
        UserError: The data have changed since a job ran.
    """
    readers = [FinishedExamples(job.files) for job in jobs]
    for example in examples:
        rows = tuple(reader.take(example.id) for reader in readers)
        for job, row in zip(jobs, rows, strict=True):
            if row:
                check_document(job.label, example, row)
        if any(rows):
            yield JoinedExample(example.id, example, rows)
        if not any(reader.next for reader in readers):
            return
    for job, reader in zip(jobs, readers, strict=True):
        reader.check_end(job.label)


def without_data(jobs: Sequence[JobRows]) -> Iterator[JoinedExample]:
    """Yields the examples that any job has finished, by their number in the task."""
    # All are in task order, so that merging needs only one row per job in memory.
    numbered = [_numbered(job, index) for index, job in enumerate(jobs)]
    for _, group in groupby(merge(*numbered, key=itemgetter(0)), key=itemgetter(0)):
        by_id: dict[str, list[Row | None]] = {}
        for _, index, row in group:
            by_id.setdefault(row.statistics.id, [None] * len(jobs))[index] = row
        yield from (
            JoinedExample(example_id, None, tuple(rows)) for example_id, rows in by_id.items()
        )


def _numbered(job: JobRows, index: int) -> Iterator[tuple[int, int, Row]]:
    return ((row.statistics.number, index, row) for row in job.files.examples())


_GONE = "lost answers, and curves that need the documents, are left out"


@dataclass
class ExampleFacts:
    """Traces of the examples of all runs."""

    # Traces by run, pipeline and task, then by the example's id.
    by_job: dict[tuple[Path, str, str], dict[str, ExampleTrace]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # notes on the runs without traces, with reasons


def facts(runs: Sequence[Path]) -> ExampleFacts:
    """Returns the traces of the examples; runs without data are left out with a note."""
    result = ExampleFacts()
    for run in runs:
        traces: dict[tuple[Path, str, str], dict[str, ExampleTrace]] = {}
        try:
            for trace in trace_examples(run):
                traces.setdefault((run, trace.pipeline, trace.task), {})[trace.id] = trace
        except UserError as error:
            result.notes.append(f"{run.name}: {_GONE}: {error}")
        else:
            result.by_job |= traces
    return result
