"""Pipelines that share a task and a reader, run over one stream of documents."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from leporello.calls import sees_gold
from leporello.directory import write_json
from leporello.engine import Engine
from leporello.errors import UserError
from leporello.executors import site_of
from leporello.executors.site import Arrival, Assignment, Site
from leporello.jobs import Job
from leporello.journal import Journal
from leporello.means import Means
from leporello.metrics import make_metrics
from leporello.progress import Progress
from leporello.records import JSON
from leporello.results import Result, Summary, write_results
from leporello.sizes import Sizes
from leporello.timings import Timings, reading_key, selecting_key
from leporello.workshop import Workshop

__all__ = ["Batch", "batches"]


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


@dataclass
class Clock:
    """What passed on the clock, for all pipelines that ran side by side.

    Attributes:
        starting: Seconds until the first document had been selected from: processes or actors
            started, and what they load.
        working: Seconds from there to the end.
    """

    starting: float = 0.0
    working: float = 0.0


def batches(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yields the jobs that run side by side: those on one task with one reader in one place.

    So one reader's model is in memory at a time, and what pipelines derive from a document in
    common is derived once.
    """
    together: dict[str, list[Job]] = {}
    for job in jobs:
        reader = json.dumps(job.pipeline.stages["reader"].resolved(), sort_keys=True)
        together.setdefault(f"{job.task.name} {reader} {job.placement!r}", []).append(job)
    yield from together.values()


class Batch:
    """Runs jobs on one task with one reader side by side; their journals hold what is done."""

    def __init__(self, jobs: Sequence[Job], workshop: Workshop, means: Means) -> None:
        """Reads the journals that earlier processes left."""
        self.jobs, self.means = jobs, means
        self.stages = [workshop.build(job.pipeline) for job in jobs]
        self._sizes = Sizes(means.directory, jobs[0].pipeline)
        self.journals = [
            Journal(means.directory.journal(job.pipeline.name, job.task.name)) for job in jobs
        ]
        self._expected = jobs[0].expected(means.limit)
        self.told = all(self._is_told(place) for place in self._places())
        self._before = [len(journal.done) for journal in self.journals]
        self._spent = [Selecting() for _ in jobs]
        self._clock = Clock()
        self._engines: dict[int, Engine[Any]] = {}

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
            assignment = Assignment(
                jobs=self.jobs,
                stages=self.stages,
                journals=self.journals,
                sizes=self._sizes.kept,
                places=places,
                means=self.means,
                progress=progress,
            )
            with site_of(assignment) as site:
                self._carry_out(site, places, progress)
        self._check_data(job)

    def _carry_out(self, site: Site[Any], places: Sequence[int], progress: Progress) -> None:
        began = time.monotonic()
        self._engines |= {place: self._engine(site, place, progress) for place in places}
        for arrival in site.arrivals():
            self._clock.starting = self._clock.starting or time.monotonic() - began
            for place in places:
                self._offer(place, arrival)
            progress.document()
        for place in places:
            self._engines[place].finish()
            if self._engines[place].pool.tally.reads:
                self._sizes.keep(self._engines[place].pool.sizes)
        self._clock.working = time.monotonic() - began - self._clock.starting

    def _offer(self, place: int, arrival: Arrival[Any]) -> None:
        if place not in arrival.launches:
            self._engines[place].pass_over(len(arrival.numbers))
            return
        spent = self._spent[place]
        spent.documents += 1
        spent.characters += arrival.characters
        spent.seconds += arrival.seconds[place]
        self._engines[place].offer(arrival.numbers, arrival.launches[place])

    def _engine(self, site: Site[Any], place: int, progress: Progress) -> Engine[Any]:
        pool = site.pool(place)

        def before_step() -> None:
            self.means.check(progress)
            self._sizes.keep(pool.sizes)

        crew, limits = site.crew(place), self.means.limits
        return Engine(self.journals[place], pool, crew, progress, limits, before_step=before_step)

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
            "clock": asdict(self._clock),
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
