"""Pipelines that share a task and a reader, run over one stream of documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.calls import sees_gold
from leporello.directory import RunDirectory, write_json
from leporello.engine import Engine, Limits
from leporello.errors import UserError
from leporello.executors import Executor, Group, Here, Processes, Selection
from leporello.executors.groups import by_document
from leporello.jobs import Job
from leporello.journal import Journal
from leporello.metrics import make_metrics
from leporello.progress import Progress
from leporello.reading import replicate
from leporello.records import JSON
from leporello.results import Result, Summary, write_results
from leporello.sizes import Sizes
from leporello.supply import examples_of, normaliser_of
from leporello.timings import Timings, reading_key, selecting_key
from leporello.workshop import Workshop

if TYPE_CHECKING:
    from leporello.cache import Cache

__all__ = ["Batch", "Means", "batches"]


@dataclass
class Selecting:
    """What dividing and selecting came to.

    Attributes:
        documents: From which was selected.
        characters: Of these.
        seconds: Spent; what pipelines share, the first of them pays.
    """

    documents: int = 0
    characters: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Means:
    """What a run works with.

    Attributes:
        directory: Of the run.
        limits: How much is under way at once.
        limit: Examples a task at most.
        workers: Processes that divide and select; 0 does it in this one.
        cache: None keeps nothing.
        replicas: Processes that read; 1 reads in this one.
        check: Called between steps; raises `Stopped` to end the run.
    """

    directory: RunDirectory
    limits: Limits
    limit: int | None
    workers: int
    cache: Cache | None
    replicas: int
    check: Callable[[Progress], None]


def batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yields the jobs that run side by side: those on one task with one reader.

    So one reader's model is in memory at a time, and what pipelines derive from a document in
    common is derived once.
    """
    together: dict[str, list[Job]] = {}
    for job in jobs:
        reader = json.dumps(job.pipeline.stages["reader"].resolved(), sort_keys=True)
        together.setdefault(f"{job.task.name} {reader}", []).append(job)
    yield from together.values()


class Batch:
    """Runs jobs on one task with one reader side by side; their journals hold what is done."""

    def __init__(self, jobs: Sequence[Job], workshop: Workshop, means: Means) -> None:
        """Reads the journals that earlier processes left."""
        self.jobs, self.means = jobs, means
        self.stages = [workshop.build(job.pipeline) for job in jobs]
        if means.replicas > 1:
            replicate(self.stages[0].reader, means.replicas)  # which is that of all
        self._sizes = Sizes(means.directory, jobs[0].pipeline, self.stages[0].reader)
        self.journals = [
            Journal(means.directory.journal(job.pipeline.name, job.task.name)) for job in jobs
        ]
        self._expected = jobs[0].expected(means.limit)
        self.told = all(self._is_told(place) for place in self._places())
        self._before = [len(journal.done) for journal in self.journals]
        self._spent = [Selecting() for _ in jobs]
        self._engines: dict[int, Engine] = {}

    def run(self) -> None:
        """Finishes what is not finished; failures stay as they are.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
            Stopped: The run is to end.
        """
        if left := [place for place in self._places() if not self._complete(place)]:
            self._pass(left)

    def retry(self) -> None:
        """Tries again what failed.

        Raises:
            UserError: As `run`.
            Stopped: As `run`.
        """
        if again := [place for place in self._places() if self._failed(place)]:
            for place in again:
                self.journals[place].retry(self._failed(place))
            self._pass(again)

    @property
    def wrote(self) -> bool:
        """Whether there was anything to do."""
        return any(journal.lines for journal in self.journals)

    def close(self) -> list[Result]:
        """Derives the results' files from the journals, whatever they hold.

        Raises:
            UserError: They cannot be written.
        """
        try:
            return [self._result(place) for place in self._places()]
        except OSError as error:
            raise UserError(
                f"{self.means.directory.path}: results cannot be written: {error.strerror}; the"
                " journal holds all that is finished: make room, and run the same command again"
            ) from error
        finally:
            for journal in self.journals:
                journal.close()

    def _marker(self, place: int) -> Path:
        job = self.jobs[place]
        return self.means.directory.results(job.pipeline.name, job.task.name) / ".told"

    def _is_told(self, place: int) -> bool:
        """Says whether the files tell all that the journal holds.

        Else a process was killed between the two; it has yet to end before failures are tried
        again, or they would be tried oftener than in a run that was not killed.
        """
        marker = self._marker(place)
        return marker.exists() and marker.read_text() == str(self.journals[place].size)

    def _places(self) -> range:
        return range(len(self.jobs))

    def _complete(self, place: int) -> bool:
        done = self.journals[place].done
        return self._expected is not None and all(n in done for n in range(self._expected))

    def _failed(self, place: int) -> list[int]:
        """Returns the numbers of failed examples within the limit."""
        limit = self.means.limit
        return [n for n in self.journals[place].failed if limit is None or n < limit]

    # -- one pass over the task --------------------------------------------------------------

    def _pass(self, places: Sequence[int]) -> None:
        """Offers every document with anything left to do to the engines that want it."""
        job = self.jobs[places[0]]
        several = f"{len(places)} pipelines on {job.task.name}"
        total = None if self._expected is None else self._expected * len(places)
        with Progress(job.name if len(places) == 1 else several, total) as progress:
            self._engines |= {place: self._engine(place, progress) for place in places}
            with self._executor(progress) as executor:
                for group, selections in executor.select(self._groups(places, progress)):
                    for place in places:
                        self._offer(place, group, selections.get(place))
                    progress.document()
            for place in places:
                self._engines[place].finish()
            if any(self._engines[place].pool.tally.reads for place in places):
                self._sizes.keep()
        self._check_data(job)

    def _offer(self, place: int, group: Group, selection: Selection | None) -> None:
        if selection is None:
            self._engines[place].pass_over(len(group.examples))
            return
        spent = self._spent[place]
        spent.documents += 1
        spent.characters += len(group.examples[0].document.text)
        spent.seconds += selection.seconds
        self._engines[place].offer(group.first, group.examples, selection.found)

    def _engine(self, place: int, progress: Progress) -> Engine:
        return Engine(
            self.stages[place],
            self.journals[place],
            make_metrics(self.jobs[place].source.metrics),
            progress,
            self.means.limits,
            normalise=normaliser_of(self.jobs[place].source),
            shelf=self.means.cache,
            before_step=lambda: self._before_step(progress),
        )

    def _before_step(self, progress: Progress) -> None:
        self.means.check(progress)
        self._sizes.keep()

    def _executor(self, progress: Progress) -> AbstractContextManager[Executor]:
        means, timeout = self.means, self.means.limits.example_timeout
        if means.workers == 0:
            return nullcontext(Here(self.stages, timeout))
        return Processes(
            [job.pipeline for job in self.jobs],
            means.workers,
            cache=means.cache.root if means.cache else None,
            timeout=timeout,
            while_waiting=lambda: means.check(progress),
        )

    def _groups(self, places: Sequence[int], progress: Progress) -> Iterator[Group]:
        """Yields the examples of each document, and which pipelines have any of them to do."""
        job = self.jobs[places[0]]
        examples = islice(examples_of(job.source, job.task.name), self.means.limit)
        for first, group in by_document(examples):
            numbers = range(first, first + len(group))
            left = {p: sum(n not in self.journals[p].done for n in numbers) for p in places}
            if self.means.cache:
                group[0].document.keep_on(self.means.cache)
            progress.already_done(len(group) * len(places) - sum(left.values()))
            self.means.check(progress)
            yield Group(first, group, tuple(place for place in places if left[place]))

    def _check_data(self, job: Job) -> None:
        """Notices data that changed while they were read."""
        if job.current_data() != job.signature["data"]:
            raise UserError(
                f"the data of task {job.task.name!r} changed while the run was reading them;"
                " run with --update to do again what this touches"
            )

    # -- results -------------------------------------------------------------------------------

    def _result(self, place: int) -> Result:
        job, journal = self.jobs[place], self.journals[place]
        folder = self.means.directory.results(job.pipeline.name, job.task.name)
        summary = Summary(make_metrics(job.source.metrics))
        write_results(folder, journal.rows(), summary)
        result = summary.result(
            job.pipeline.name,
            job.task.name,
            sees_gold=any(map(sees_gold, self.stages[place].all())),
        )
        write_json(folder / "metrics.json", asdict(result))
        if journal.lines:
            (folder / "verify.json").unlink(missing_ok=True)  # which was of other predictions
        if place in self._engines:
            write_json(folder / "timings.json", self._timings(place))
            self._remember(place)
        self._marker(place).write_text(str(journal.size))
        return result

    def _timings(self, place: int) -> dict[str, JSON]:
        """Returns what this process did for a job, and how long it took."""
        return {
            "examples": len(self.journals[place].done) - self._before[place],
            "selecting": asdict(self._spent[place]),
            "reading": self._engines[place].pool.tally.row(),
        }

    def _remember(self, place: int) -> None:
        """Keeps how long stages took, for the estimates of `plan`."""
        if self.means.cache is None:
            return
        timings, pipeline = Timings(self.means.cache.root), self.jobs[place].pipeline
        spent, tally = self._spent[place], self._engines[place].pool.tally
        timings.record(selecting_key(pipeline), "character", spent.characters, spent.seconds)
        key = reading_key(pipeline)
        timings.record(key, "read", tally.reads, tally.seconds)
        timings.record(key, "input token", tally.input_tokens, tally.seconds)
