"""Runs one shard for all pipelines of a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic  # by name: a stage may replace functions of `time`

from leporello.core.environment.platform import peak_memory
from leporello.core.errors import UserError
from leporello.core.records import Example
from leporello.engine.combining import CombinerRunner
from leporello.engine.database import StoreCounts, StoreKey
from leporello.engine.enriching import EnricherRunner
from leporello.engine.failures import (
    ALONE,
    TRIES,
    Attempts,
    ExampleError,
    enforce_deadlines,
    stage_errors,
    time_limit,
)
from leporello.engine.limits import AttemptLog
from leporello.engine.progress import Listener
from leporello.engine.reading import BatchReaders, restore_batch_sizes
from leporello.engine.rounds import Rounds, exhaust
from leporello.engine.selection import Selection, document_chunks, select_document
from leporello.engine.slots import Slots
from leporello.engine.store import Store
from leporello.executors.interface import Pipelines, PipelineShare, ShardOrder, ShardResult
from leporello.executors.selectors import OpenedDocument, Selected, Selectors

_TASK = -1  # instead of the index of a pipeline: operations for all pipelines


@dataclass
class _Lane:
    """One pipeline on the shard."""

    place: int  # index of the pipeline in the batch
    rounds: Rounds
    store: Store
    enricher: EnricherRunner | None  # runner of the enricher; None without one
    # Counts and statistics of the pipeline.
    share: PipelineShare = field(default_factory=PipelineShare)


class ShardRun:
    """Run of one shard for several pipelines.

    Attributes:
        log: Log of the attempts; None if attempts are not logged.
    """

    def __init__(
        self,
        pipelines: Pipelines,
        order: ShardOrder,
        listener: Listener,
        log: AttemptLog | None,
        slots: Slots | None,
    ) -> None:
        """Opens the stores that earlier workers left.

        Raises:
            UserError: A store cannot be written, another process uses it, or workers have died
                repeatedly on the shard.
        """
        self.order, self.log = order, log
        self._pipelines, self._listener, self._slots = pipelines, listener, slots
        self._started = monotonic()
        if log:
            log.open()
            if pipelines.spec.limits.example_timeout is not None:
                enforce_deadlines(log.deadline)
        self._task_attempts = self._attempts(_TASK)
        self._check_deaths()
        self._lanes = [self._lane(place) for place in order.pipelines]

    def _check_deaths(self) -> None:
        """Raises if workers would continue to die on the shard."""
        name = f"shard {self.order.shard.number} of task {self._pipelines.spec.task.name!r}"
        most = max(self._task_attempts.deaths.values(), default=0)
        # Not the documents' fault: the model does not fit, and no smaller piece would help.
        if self._task_attempts.begin("open") >= TRIES:
            raise UserError(
                f"{name}: workers have died {TRIES} times before they started it; check that there"
                " is enough memory for the model, and see their output above"
            )
        if most > 2 * TRIES:  # isolating the cause has failed
            raise UserError(f"{name}: workers have died {most} times; see their output above")

    def _lane(self, place: int) -> _Lane:
        pipelines, shard = self._pipelines, self.order.shard
        spec, pipeline = pipelines.spec, pipelines.all[place]
        path = pipeline.files.store(shard.number)
        if (remote := pipelines.remote) and not path.exists():
            remote.get(pipelines.directory.name_of(path))  # another machine may have started it
        key = StoreKey(shard.number, shard.first_example, shard.examples, spec.runs[place])
        store = Store(path, key)
        if self.order.retry and len(store.done) == shard.examples:  # otherwise it resumes a retry
            store.retry()
        # The sizes of the first worker: others would change the last digits of a model, and its
        # texts.
        store.sizes = store.sizes or self.order.sizes
        restore_batch_sizes(pipeline.stages, store.sizes)
        attempts, timeout = self._attempts(place), spec.limits.example_timeout
        runner = CombinerRunner(
            pipeline.stages, pipeline.metrics, pipeline.normalise, timeout, attempts
        )
        readers = BatchReaders(pipeline.stages, pipelines.cache, timeout, attempts)
        rounds = Rounds(runner, readers, store, spec.limits, self._listener, self._slots)
        enricher = None
        if pipeline.stages.enricher is not None:
            enricher = EnricherRunner(
                pipeline.stages, readers, spec.limits, self._listener, attempts
            )
        return _Lane(place, rounds, store, enricher)

    def _attempts(self, place: int) -> Attempts:
        if self.log is None:
            return Attempts(place)
        attempts = Attempts(place, self.log.deaths, self.log.record)
        if self.log.is_overdue:
            attempts.cause = "exceeded its time limit by far, and could not be interrupted"
        elif self.order.cause:
            attempts.cause = f"its process {self.order.cause} each time"
        return attempts

    # -- work ------------------------------------------------------------------------------------

    def admit(self, selectors: Selectors | None = None) -> None:
        """Opens the documents, selects their chunks, and starts their examples.

        Without `selectors`, this process chunks and retrieves. It also does for a shard on which a
        worker has died, to log each operation.

        Raises:
            Stopped: The run was asked to stop.
        """
        shard = self.order.shard
        if all(len(lane.store.done) == shard.examples for lane in self._lanes):
            return
        enriches = any(lane.enricher for lane in self._lanes)  # uses the reader of this process
        # After a death this process selects itself: the log must name the operation that killed it.
        if selectors and not enriches and not (self.log and self.log.deaths):
            for document, selected in selectors.select(self._opened()):
                self._add(document, selected)
            return
        for document in self._opened():
            self._add(document, {})

    def _documents(self) -> Iterator[tuple[Example, ...]]:
        """Yields the examples on each document, without opening those that killed their workers."""
        shard, deaths = self.order.shard, self._task_attempts.deaths
        numbers = range(len(shard.documents))
        closed = {
            n: self._task_attempts.cause for n in numbers if deaths["open", _TASK, n] >= TRIES
        }
        documents = self._pipelines.tasks.documents(shard, closed)
        for number in numbers:
            self._task_attempts.begin("open", number)
            yield next(documents)

    def _opened(self) -> Iterator[OpenedDocument]:
        first = self.order.shard.first_example
        for number, examples in enumerate(self._documents()):
            if self._pipelines.cache:
                examples[0].document.use_cache(self._pipelines.cache)
            numbers = range(first, first + len(examples))
            wanted = (lane.place for lane in self._lanes if not lane.store.done.issuperset(numbers))
            yield OpenedDocument(number, first, examples, tuple(wanted))
            first += len(examples)

    def _add(self, document: OpenedDocument, selected: Mapping[int, Selected]) -> None:
        for lane in self._lanes:
            if lane.place not in document.wanted:
                lane.share.examples += exhaust(lane.rounds.skip(len(document.examples)))
                continue
            started = monotonic()
            selections, seconds = selected.get(lane.place) or (self._select(lane, document), 0.0)
            lane.share.documents += 1
            lane.share.characters += document.characters
            lane.share.seconds += seconds or monotonic() - started
            added = lane.rounds.add(document.first, document.examples, selections)
            lane.share.examples += exhaust(added)
        self._listener.document()

    def _select(self, lane: _Lane, document: OpenedDocument) -> Sequence[Selection | ExampleError]:
        """Selects for the examples on a document; one at a time if it killed its workers."""
        timeout, stages = self._pipelines.spec.limits.example_timeout, lane.rounds.runner.stages
        attempts, examples = lane.rounds.attempts, document.examples
        try:
            self._enrich(lane, document)
        except ExampleError as error:
            return [ExampleError("task", e.fault) if e.fault else error for e in examples]
        if attempts.begin("select", document.number) < TRIES:
            return select_document(stages, examples, timeout)
        selections: list[Selection | ExampleError] = []
        for number, example in enumerate(examples, document.first):
            deaths = attempts.begin("select", document.number, number)
            # The group was tried three times, so one death alone is proof enough.
            if deaths >= ALONE or len(examples) == 1:
                selections.append(ExampleError("retriever", attempts.cause))
            else:
                selections += select_document(stages, [example], timeout)
        return selections

    def _enrich(self, lane: _Lane, document: OpenedDocument) -> None:
        """Makes the passages of a document, if the pipeline has an enricher."""
        valid = next((example for example in document.examples if not example.fault), None)
        if lane.enricher is None or valid is None:
            return
        lane.enricher.begin(document.number)
        with stage_errors("chunker"), time_limit(self._pipelines.spec.limits.example_timeout):
            chunks = document_chunks(lane.enricher.stages.chunker, valid)
        if chunks:
            lane.enricher.prepare(chunks, document.number, lane.store)

    @property
    def is_idle(self) -> bool:
        """Whether no example waits for a read."""
        return all(lane.rounds.is_idle for lane in self._lanes)

    def finish(self) -> ShardResult:
        """Finishes all active examples, and closes the stores.

        Raises:
            UserError: The user made a mistake, or a store cannot be written.
            Stopped: The run was asked to stop.
        """
        for lane in self._lanes:
            lane.share.examples += exhaust(lane.rounds.finish())
            lane.store.close()
            store = lane.store
            lane.share.counts = StoreCounts(len(store.done), len(store.failed), store.key)
        self._publish()
        result = self.result()
        if self.log:
            self.log.close(finished=True)
        return result

    def _publish(self) -> None:
        """Uploads the stores if the run is at a URL."""
        # Only whole files: an object store cannot append, and a lost machine repeats at most a
        # shard.
        if remote := self._pipelines.remote:
            self._task_attempts.begin("publish")
            paths = (lane.store.path for lane in self._lanes)
            remote.put(*map(self._pipelines.directory.name_of, paths))

    def close(self) -> None:
        """Closes the files of an unfinished shard."""
        for lane in self._lanes:
            lane.store.close()
        with suppress(UserError):  # the error that ended the shard is reported instead
            self._publish()
        if self.log:
            self.log.close(finished=False)

    def result(self, outcome: str = "finished", error: str = "") -> ShardResult:
        """Returns the result of the shard so far."""
        for lane in self._lanes:
            lane.share.reading = lane.rounds.readers.statistics
        return ShardResult(
            shard=self.order.shard.number,
            attempt=self.log.attempt if self.log else 1,
            outcome=outcome,
            worker=self._pipelines.worker,
            seconds=monotonic() - self._started,
            pipelines={lane.place: lane.share for lane in self._lanes},
            peak_bytes=peak_memory(),
            error=error,
        )
