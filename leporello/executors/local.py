"""This machine as a site: it reads and combines in this process, and selects beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from types import TracebackType

from leporello.crew import Crew
from leporello.executors.groups import Executor, Group, by_document
from leporello.executors.here import Here
from leporello.executors.processes import Processes
from leporello.executors.site import Arrival, Assignment
from leporello.metrics import make_metrics
from leporello.reading import Pool, replicate, settle
from leporello.records import Read
from leporello.supply import examples_of, normaliser_of

__all__ = ["Local"]


class Local:
    """Runs an assignment on this machine."""

    def __init__(self, assignment: Assignment) -> None:
        """Starts nothing yet.

        Raises:
            UserError: The reader cannot read in several processes.
        """
        self._assignment = assignment
        self._placement = assignment.jobs[0].placement
        reader = assignment.stages[0].reader  # which is that of all
        if (count := self._placement.replicas_here) > 1:
            replicate(reader, count)
        settle(reader, assignment.sizes)
        self._crews = {place: self._crew(place) for place in assignment.places}
        self._open = ExitStack()

    def __enter__(self) -> Local:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def pool(self, place: int) -> Pool:
        """Returns the reader of a pipeline."""
        means = self._assignment.means
        reader = self._assignment.stages[place].reader
        return Pool(reader, means.cache, means.limits.example_timeout)

    def crew(self, place: int) -> Crew:
        """Returns who holds the combiners in flight of a pipeline."""
        return self._crews[place]

    def _crew(self, place: int) -> Crew:
        source = self._assignment.jobs[place].source
        return Crew(
            self._assignment.stages[place],
            make_metrics(source.metrics),
            normaliser_of(source),
            self._assignment.means.limits.example_timeout,
        )

    def arrivals(self) -> Iterator[Arrival[Read]]:
        """Yields all documents in task order, some of them prepared ahead.

        Raises:
            UserError: A mistake of the user's.
            Stopped: The run is to end.
        """
        journals = self._assignment.journals
        for group, selections in self._executor().select(self._groups()):
            launches = {
                place: self._crews[place].ready(
                    group.first, group.examples, selection.found, journals[place]
                )
                for place, selection in selections.items()
            }
            seconds = {place: selection.seconds for place, selection in selections.items()}
            characters = len(group.examples[0].document.text)
            yield Arrival(group.numbers, characters, launches, seconds)

    def _executor(self) -> Executor:
        means, progress = self._assignment.means, self._assignment.progress
        timeout, workers = means.limits.example_timeout, self._placement.workers_here
        if workers == 0:
            return Here(self._assignment.stages, timeout)
        return self._open.enter_context(
            Processes(
                [job.pipeline for job in self._assignment.jobs],
                workers,
                cache=means.cache.root if means.cache else None,
                timeout=timeout,
                while_waiting=lambda: means.check(progress),
            )
        )

    def _groups(self) -> Iterator[Group]:
        """Yields the examples of each document, and which pipelines have any of them to do."""
        assignment, means = self._assignment, self._assignment.means
        job = assignment.jobs[0]
        for first, examples in by_document(
            islice(examples_of(job.source, job.task.name), means.limit)
        ):
            left = assignment.left(range(first, first + len(examples)))
            if means.cache:
                examples[0].document.keep_on(means.cache)
            assignment.progress.already_done(len(examples) * len(left) - sum(left.values()))
            means.check(assignment.progress)
            yield Group(first, examples, tuple(place for place in left if left[place]))
