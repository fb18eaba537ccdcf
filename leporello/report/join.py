"""What pipelines left of each example of a task, joined with its data, one example at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.records import Example
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import ExampleFiles, JobFiles

Row = ExampleFiles


@dataclass(frozen=True, slots=True)
class JobRows:
    """One pipeline on one task of a run.

    Attributes:
        label: Label in the report.
        run: Directory of the run.
        pipeline: Name of the pipeline.
        task: Name of the task.
    """

    label: str
    run: Path
    pipeline: str
    task: str

    @property
    def key(self) -> tuple[Path, str, str]:
        """What tells it from all others."""
        return self.run, self.pipeline, self.task

    def rows(self) -> Iterator[Row]:
        """Yields its finished examples, in task order."""
        yield from JobFiles(RunDirectory(self.run), self.pipeline, self.task).examples()


@dataclass(frozen=True, slots=True)
class JoinedExample:
    """One example, and what each job left of it.

    Attributes:
        id: Id of the example.
        example: Example; None where the data are gone.
        rows: Rows, one a job; None where it has not finished the example.
    """

    id: str
    example: Example | None
    rows: tuple[Row | None, ...]


def with_data(jobs: Sequence[JobRows], examples: Iterable[Example]) -> Iterator[JoinedExample]:
    """Yields the examples that any job has finished, with their documents, in task order.

    Raises:
        UserError: The data are not what they were when a job ran.
    """
    heads = [_Head(job.rows()) for job in jobs]
    for example in examples:
        rows = tuple(head.take(example.id) for head in heads)
        for job, row in zip(jobs, rows, strict=True):
            _check(job, example, row)
        if any(rows):
            yield JoinedExample(example.id, example, rows)
        if not any(head.next for head in heads):
            return
    for job, head in zip(jobs, heads, strict=True):
        if head.next:
            raise UserError(
                f"{job.label}: the data have no example {_id(head.next)!r} in its place"
            )


def without_data(jobs: Sequence[JobRows]) -> Iterator[JoinedExample]:
    """Yields the examples that any job has finished, by their number in the task."""
    # Each comes in task order, so that merging holds one row a job.
    numbered = [_numbered(job, index) for index, job in enumerate(jobs)]
    for _, group in groupby(merge(*numbered, key=itemgetter(0)), key=itemgetter(0)):
        by_id: dict[str, list[Row | None]] = {}
        for _, index, row in group:
            by_id.setdefault(_id(row), [None] * len(jobs))[index] = row
        yield from (
            JoinedExample(example_id, None, tuple(rows)) for example_id, rows in by_id.items()
        )


def _numbered(job: JobRows, index: int) -> Iterator[tuple[int, int, Row]]:
    return ((row.statistics.number, index, row) for row in job.rows())


class _Head:
    """The next row of a job."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows = rows
        self.next = next(rows, None)

    def take(self, example_id: str) -> Row | None:
        """Returns the next row if it is this example's."""
        if self.next is None or _id(self.next) != example_id:
            return None
        row, self.next = self.next, next(self._rows, None)
        return row


def _id(row: Row) -> str:
    return row.statistics.id


def _check(job: JobRows, example: Example, row: Row | None) -> None:
    document = row.statistics.document if row else ""
    if document and document != example.document.sha256:
        raise UserError(
            f"{job.label}: document {example.document.id!r} is not what it was when the run was"
            " made"
        )
