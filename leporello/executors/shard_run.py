"""Runs one shard for all pipelines of a batch."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic  # by name: a stage may replace functions of `time`

from leporello.core.errors import UserError
from leporello.engine.database import StoreCounts, StoreKey
from leporello.engine.failures import OVERDUE, TRIES, Attempts, Phase
from leporello.engine.progress import Listener
from leporello.engine.reading import BatchReaders, restore_batch_sizes
from leporello.engine.rounds import Rounds
from leporello.engine.slots import Slots
from leporello.engine.store import Store
from leporello.executors.interface import Pipelines, PipelineShare, ShardOrder, ShardResult
from leporello.executors.selectors import OpenedDocument, Selected, Selectors
from leporello.jobs.files import JobFiles

_TASK = -1  # instead of the index of a pipeline: operations for all pipelines


@dataclass
class _Lane:
    """One pipeline on the shard."""

    place: int  # index of the pipeline in the batch
    rounds: Rounds
    store: Store
    earlier: int  # number of examples that earlier workers have finished
    share: PipelineShare = field(default_factory=PipelineShare)


class ShardRun:
    """Run of one shard for several pipelines."""

    def __init__(
        self,
        pipelines: Pipelines,
        order: ShardOrder,
        listener: Listener,
        slots: Slots | None,
        record: Callable[[int, Phase], None] | None,
    ) -> None:
        """Prepares the run; see `ShardWorker` for `record`."""
        self.order, self._record = order, record
        self._pipelines, self._listener, self._slots = pipelines, listener, slots
        self._started = monotonic()
        self._task_attempts = self._attempts(_TASK)
        self._lanes: list[_Lane] = []

    def start(self, selectors: Selectors | None) -> None:
        """Opens the stores, selects chunks here or in `selectors`, and starts the examples."""
        self._open()
        shard = self.order.shard
        if all(len(lane.store.done) == shard.examples for lane in self._lanes):
            return
        # An enricher uses the reader of this process.
        enriches = any(lane.rounds.stages.enricher is not None for lane in self._lanes)
        # After a death this process selects itself: the log must name the operation that killed it.
        if selectors and not enriches and not self.order.deaths:
            for document, selected in selectors.select(self._opened()):
                self._add(document, selected)
            return
        for document in self._opened():
            self._add(document, {})

    def _open(self) -> None:
        """Opens the stores that earlier workers left."""
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
        for place in self.order.pipelines:
            self._lanes.append(self._lane(place))

    def _lane(self, place: int) -> _Lane:
        pipelines, shard = self._pipelines, self.order.shard
        spec, stages = pipelines.spec, pipelines.stages[place]
        files = JobFiles(pipelines.directory, spec.pipelines[place].name, spec.task.name)
        path = files.store(shard.number)
        pipelines.directory.download([path])  # another machine may have started it
        key = StoreKey(shard.number, shard.first_example, shard.examples, spec.runs[place])
        store = Store(path, key)
        if self.order.retry and len(store.done) == shard.examples:  # otherwise it resumes a retry
            store.retry()
        # The sizes of the first worker, since others would change the last digits of a model.
        store.sizes = store.sizes or self.order.sizes
        restore_batch_sizes(stages, store.sizes)
        readers = BatchReaders(stages, pipelines.cache, spec.limits, self._attempts(place))
        if readers.slots and self._slots is None:
            # A worker has died on this shard, and one read at a time shows which read killed it.
            # Answers of readers with slots do not depend on their batch, so this costs only time.
            readers.limits = replace(spec.limits, window=1)
        metrics, normalise = pipelines.metrics, pipelines.normalisers[place]
        rounds = Rounds(readers, store, self._listener, self._slots, metrics, normalise)
        return _Lane(place, rounds, store, len(store.done))

    def _attempts(self, place: int) -> Attempts:
        record = self._record and partial(self._record, self.order.shard.number)
        attempts = Attempts(place, self.order.deaths, record)
        if cause := self.order.cause:
            attempts.cause = cause if cause == OVERDUE else f"its process {cause} each time"
        return attempts

    def _opened(self) -> Iterator[OpenedDocument]:
        """Yields each document, without opening those that killed their workers."""
        shard, attempts = self.order.shard, self._task_attempts
        numbers, first = range(len(shard.documents)), shard.first_example
        closed = {n: attempts.cause for n in numbers if attempts.deaths["open", _TASK, n] >= TRIES}
        documents = self._pipelines.tasks.documents(shard, closed)
        for number in numbers:
            attempts.begin("open", number)
            examples = next(documents)
            if self._pipelines.cache:
                examples[0].document.use_cache(self._pipelines.cache)
            of_document = range(first, first + len(examples))
            lanes = (n for n in self._lanes if not n.store.done.issuperset(of_document))
            yield OpenedDocument(number, first, examples, tuple(lane.place for lane in lanes))
            first += len(examples)

    def _add(self, document: OpenedDocument, selected: Mapping[int, Selected]) -> None:
        for lane in self._lanes:
            if lane.place not in document.wanted:
                lane.rounds.skip(len(document.examples))
                continue
            started = monotonic()
            place = document.number, document.first, document.examples
            selections, seconds = selected.get(lane.place) or (lane.rounds.select(*place), 0.0)
            lane.share.documents += 1
            lane.share.characters += document.characters
            lane.share.seconds += seconds or monotonic() - started
            lane.rounds.add(document.first, document.examples, selections)
        self._listener.document()

    @property
    def is_idle(self) -> bool:
        """Whether no example waits for a read."""
        return all(lane.rounds.is_idle for lane in self._lanes)

    def finish(self) -> ShardResult:
        """Finishes all active examples, and closes the stores."""
        for lane in self._lanes:
            lane.rounds.finish()
            (store := lane.store).close()
            lane.share.counts = StoreCounts(len(store.done), len(store.failed), store.key)
        self._publish()
        return self.result()

    def _publish(self) -> None:
        # Only whole files, since an object store cannot append.
        directory = self._pipelines.directory
        if directory.remote and self._lanes:
            self._task_attempts.begin("publish")
            directory.upload(*(lane.store.path for lane in self._lanes))

    def close(self) -> None:
        """Closes the files of an unfinished shard."""
        for lane in self._lanes:
            lane.store.close()
        with suppress(UserError):  # the error that ended the shard is reported instead
            self._publish()

    def result(self, outcome: str = "finished", error: str = "") -> ShardResult:
        """Returns the result of the shard so far."""
        for lane in self._lanes:
            lane.share.examples = len(lane.store.done) - lane.earlier
            lane.share.reading = lane.rounds.readers.statistics
        return ShardResult(
            shard=self.order.shard.number,
            attempt=self.order.attempt,
            outcome=outcome,
            seconds=monotonic() - self._started,
            pipelines={lane.place: lane.share for lane in self._lanes},
            error=error,
        )
