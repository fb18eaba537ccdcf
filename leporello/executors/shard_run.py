"""One shard, carried out for all pipelines of a batch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from leporello.core.environment.platform import peak_memory
from leporello.core.errors import UserError
from leporello.core.records import Example
from leporello.engine.attempts import ALONE, TRIES, Attempts
from leporello.engine.combining import ActiveCombiners
from leporello.engine.engine import Engine
from leporello.engine.enriching import Enriching
from leporello.engine.failures import ExampleError
from leporello.engine.journal.journal import Journal
from leporello.engine.journal.rows import ShardRow
from leporello.engine.progress import Listener
from leporello.engine.reading import WindowReaders, restore_batch_sizes
from leporello.engine.selection import Selection, TimedSelections, select_document
from leporello.engine.sliding import SlidingEngine, Slots
from leporello.engine.time_limit import enforce_deadlines
from leporello.executors.attempt_log import AttemptLog
from leporello.executors.interface import (
    PipelineShare,
    SelectStatistics,
    ShardOrder,
    ShardResult,
)
from leporello.executors.pipelines import Pipelines, WorkerPipeline
from leporello.executors.selectors import OpenedDocument, Selectors
from leporello.executors.shard_passages import ShardPassages

_TASK = -1  # in the place of a pipeline: what is begun for all of them


@dataclass
class _Lane:
    """What one pipeline does at the shard.

    Attributes:
        place: Place of the pipeline in its batch.
        pipeline: The pipeline.
        journal: Its journal.
        attempts: Record of what it begins.
        engine: Its engine.
        passages: Passages of its documents, if it has an enricher.
        share: Counts and statistics of what it did.
        before: Number of examples that were finished before.
    """

    place: int
    pipeline: WorkerPipeline
    journal: Journal
    attempts: Attempts
    engine: Engine | SlidingEngine
    passages: ShardPassages | None
    share: PipelineShare = field(default_factory=PipelineShare)
    before: int = 0

    @property
    def paths(self) -> list[Path]:
        """Paths of its journals."""
        return [self.journal.path, *([self.passages.journal.path] if self.passages else [])]

    def close(self) -> None:
        """Closes its journals."""
        self.journal.close()
        if self.passages:
            self.passages.journal.close()


class ShardRun:
    """One shard for several pipelines: opened, admitted, finished.

    Attributes:
        order: The shard that is to be worked at.
        log: Attempts at the shard; None if none are written down.
    """

    def __init__(
        self,
        pipelines: Pipelines,
        order: ShardOrder,
        listener: Listener,
        log: AttemptLog | None,
        slots: Slots | None,
    ) -> None:
        """Opens the journals that earlier workers left.

        Raises:
            UserError: A journal is damaged, or cannot be written to; workers have died before they
                had begun anything of the shard.
        """
        self.order, self.log = order, log
        self._pipelines, self._listener, self._slots = pipelines, listener, slots
        self._started = time.monotonic()
        if log:
            log.open()
            if pipelines.spec.limits.example_timeout is not None:
                enforce_deadlines(log.deadline)
        self._opening = self._attempts(_TASK)
        self._begin()
        self._lanes = [self._lane(place) for place in order.pipelines]

    def _begin(self) -> None:
        """Gives up a shard over which workers would go on dying."""
        name = f"shard {self.order.shard.number} of task {self._pipelines.spec.task!r}"
        most = max(self._opening.deaths.values(), default=0)
        if self._opening.begin("open") >= TRIES:
            raise UserError(
                f"{name}: workers have died {TRIES} times before they had begun anything of it: is"
                " there memory for the model? Their words stand above"
            )
        if most > 2 * TRIES:  # what has killed so often is not done any more
            raise UserError(f"{name}: workers have died {most} times; their words stand above")

    def _lane(self, place: int) -> _Lane:
        pipeline, shard = self._pipelines.all[place], self.order.shard
        path = pipeline.files.journal(shard.number)
        if self.order.retry and (remote := self._pipelines.remote) and not path.exists():
            remote.get(self._pipelines.directory.name_of(path))  # another machine has finished it
        journal = Journal(path)
        run = self._pipelines.spec.runs[place]
        of = ShardRow(shard.number, shard.first_example, shard.examples, run)
        journal.begin(of)
        if self.order.retry and len(journal.done) == shard.examples:  # else a retry goes on
            journal.retry(journal.failed)
        journal.sizes = journal.sizes or self.order.sizes
        restore_batch_sizes(pipeline.stages, journal.sizes)
        attempts = self._attempts(place)
        engine = self._engine(pipeline, journal, attempts)
        passages = None
        if pipeline.stages.enricher is not None and len(journal.done) < shard.examples:
            passages = ShardPassages(
                pipeline.files.passages(shard.number), of, self._enriching(engine, attempts)
            )
        return _Lane(place, pipeline, journal, attempts, engine, passages, before=len(journal.done))

    def _enriching(self, engine: Engine | SlidingEngine, attempts: Attempts) -> Enriching:
        limits, stages = self._pipelines.spec.limits, engine.combiners.stages
        return Enriching(stages, engine.readers, limits, self._listener, attempts)

    def _attempts(self, place: int) -> Attempts:
        if self.log is None:
            return Attempts(place)
        attempts = Attempts(place, self.log.deaths, self.log.record)
        if self.log.is_overdue:
            attempts.cause = "took far longer than its time, and could not be interrupted"
        elif self.order.cause:
            attempts.cause = f"its process {self.order.cause} each time"
        return attempts

    def _engine(
        self, pipeline: WorkerPipeline, journal: Journal, attempts: Attempts
    ) -> Engine | SlidingEngine:
        limits = self._pipelines.spec.limits
        timeout, cache = limits.example_timeout, self._pipelines.cache
        combiners = ActiveCombiners(
            pipeline.stages, pipeline.metrics, pipeline.normalise, timeout, attempts
        )
        readers = WindowReaders(pipeline.stages, cache, timeout, attempts)
        if self._slots is not None:
            return SlidingEngine(journal, readers, combiners, self._slots, self._listener)
        return Engine(journal, readers, combiners, limits, self._listener)

    # -- work ------------------------------------------------------------------------------------

    def admit(self, selectors: Selectors | None = None) -> None:
        """Opens the documents, selects from them, and adds them to the engines.

        Args:
            selectors: Processes that divide and select ahead of the reader; None does it here. A
                shard over which a worker has died does it here, so that it is known what was begun.

        Raises:
            UserError: A mistake of the user's.
            Stopped: The run is to end.
        """
        shard = self.order.shard
        if all(len(lane.journal.done) == shard.examples for lane in self._lanes):
            return
        enriches = any(lane.passages for lane in self._lanes)  # with a reader, which is here
        if selectors and not enriches and not (self.log and self.log.deaths):
            for document, selected in selectors.select(self._opened()):
                self._add(document, selected)
            return
        for document in self._opened():
            self._add(document, {})

    def _documents(self) -> Iterator[tuple[Example, ...]]:
        """Yields the examples on each document; of one that killed its worker, without opening."""
        shard, deaths = self.order.shard, self._opening.deaths
        numbers = range(len(shard.documents))
        closed = {n: self._opening.cause for n in numbers if deaths["open", _TASK, n] >= TRIES}
        documents = self._pipelines.tasks.documents(shard, closed)
        for number in numbers:
            self._opening.begin("open", number)
            yield next(documents)

    def _opened(self) -> Iterator[OpenedDocument]:
        first = 0
        for number, examples in enumerate(self._documents()):
            if self._pipelines.cache:
                examples[0].document.use_cache(self._pipelines.cache)
            numbers = range(first, first + len(examples))
            wanted = (
                lane.place
                for lane in self._lanes
                if any(n not in lane.journal.done for n in numbers)
            )
            yield OpenedDocument(number, first, examples, tuple(wanted))
            first += len(examples)

    def _add(self, document: OpenedDocument, selected: Mapping[int, TimedSelections]) -> None:
        for lane in self._lanes:
            if lane.place not in document.wanted:
                lane.engine.skip(len(document.examples))
                continue
            timed = selected.get(lane.place) or self._select(lane, document)
            lane.share.selecting.add(
                SelectStatistics(1, len(document.examples[0].document.text), timed.seconds)
            )
            lane.engine.add_document(document.first, document.examples, timed.selections)
        self._listener.document()

    def _select(self, lane: _Lane, document: OpenedDocument) -> TimedSelections:
        """Selects from a document; for one that has killed its worker, example by example."""
        timeout, stages = self._pipelines.spec.limits.example_timeout, lane.pipeline.stages
        sound = next((example for example in document.examples if not example.fault), None)
        if lane.passages and sound:
            started = time.monotonic()
            try:
                lane.passages.prepare(document.number, sound)
            except ExampleError as error:
                failed = (
                    ExampleError("task", e.fault) if e.fault else error for e in document.examples
                )
                return TimedSelections((*failed,), time.monotonic() - started)
        if lane.attempts.begin("select", document.number) < TRIES:
            return select_document(stages, document.examples, timeout)
        selections: list[Selection | ExampleError] = []
        for number, example in enumerate(document.examples, document.first):
            deaths = lane.attempts.begin("select", document.number, number)
            if deaths >= ALONE or len(document.examples) == 1:
                selections.append(ExampleError("retriever", lane.attempts.cause))
            else:
                selections += select_document(stages, [example], timeout).selections
        return TimedSelections(tuple(selections), 0.0)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left that a sliding reader has to answer."""
        return all(
            lane.engine.is_idle for lane in self._lanes if isinstance(lane.engine, SlidingEngine)
        )

    def finish(self) -> ShardResult:
        """Finishes what is active, and writes the shard's part of the results.

        Raises:
            UserError: As `admit`; or the part cannot be written.
            Stopped: The run is to end.
        """
        for lane in self._lanes:
            lane.engine.finish()
        for lane in self._lanes:
            lane.close()
            lane.share.counts = lane.pipeline.files.write_part(self.order.shard.number)
            self._publish(lane)
        result = self.result()
        if self.log:
            self.log.close(finished=True)
        return result

    def _publish(self, lane: _Lane) -> None:
        """Puts a finished shard of a run at a URL where it belongs, its mark last."""
        if remote := self._pipelines.remote:
            files, number = lane.pipeline.files, self.order.shard.number
            passages = [files.passages(number)] if files.passages(number).exists() else []
            paths = (files.journal(number), *passages, files.part(number))
            remote.put(*map(self._pipelines.directory.name_of, paths))

    def close(self) -> None:
        """Closes the files of a shard that is left as it is."""
        for lane in self._lanes:
            lane.close()
        if remote := self._pipelines.remote:  # another machine goes on from there
            journals = (path for lane in self._lanes for path in lane.paths if path.exists())
            with suppress(UserError):  # why the shard is left is the fault to tell
                remote.put(*map(self._pipelines.directory.name_of, journals))
        if self.log:
            self.log.close(finished=False)

    def result(self, outcome: str = "finished", error: str = "") -> ShardResult:
        """Returns what was done, and how it ended."""
        for lane in self._lanes:
            lane.share.examples = len(lane.journal.done) - lane.before
            lane.share.reading = lane.engine.readers.statistics
        return ShardResult(
            shard=self.order.shard.number,
            attempt=self.log.attempt if self.log else 1,
            outcome=outcome,
            worker=self._pipelines.worker,
            seconds=time.monotonic() - self._started,
            pipelines={lane.place: lane.share for lane in self._lanes},
            sizes=self._lanes[0].engine.readers.sizes,
            peak_bytes=peak_memory(),
            error=error,
        )
