"""Runs the examples of a shard in rounds: groups reads of many examples into batches.

All examples of a group start. The reads of a step, in the order of the examples, are split into
batches per reader. Each example receives its outputs, and its next reads belong to its next step.
A batch is a function of the shard, the pipeline and the step, so a resumed shard forms the same
batches as an uninterrupted run. Readers whose answers do not depend on their batch have slots
instead: every read is sent separately as soon as a slot is free.
"""

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import TypeAlias

from leporello.core.errors import ReadError
from leporello.core.records import Example, Reply
from leporello.engine.active_example import ActiveExample, Scoring
from leporello.engine.enriching import EnricherRunner
from leporello.engine.failures import ExampleError, stage_errors, time_limit
from leporello.engine.progress import Listener
from leporello.engine.reading import BatchReader, BatchReaders
from leporello.engine.results.finished import FinishedRow
from leporello.engine.results.serialization import reply_of
from leporello.engine.selection import Selection, by_document, document_chunks, select_document
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore
from leporello.engine.task_examples import Normalizer
from leporello.metrics import Metric

# A commit takes longer than an example that needs no reading.
_COMMIT = 0.5  # seconds between commits of examples that need no reading

# A read: the example, and the index of the read in the example's round.
_Place: TypeAlias = tuple[ActiveExample, int]


@dataclass
class Rounds:
    """Runs one pipeline over the examples of one shard, in the order of the task."""

    readers: BatchReaders  # readers of the pipeline, whose time limit and log apply to all calls
    store: MemoryStore
    listener: Listener = field(default_factory=Listener)
    # Slots for single reads, shared with other shards and pipelines; None reads batches.
    slots: Slots | None = None
    # Metrics whose statistics are stored with each example, and the normaliser of the task.
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    normalise: Normalizer | None = None

    def __post_init__(self) -> None:
        self.stages, self.attempts = self.readers.stages, self.readers.attempts
        self._scoring = Scoring(self.readers, self.metrics, self.normalise)
        self._active: dict[int, ActiveExample] = {}
        self._batches: deque[tuple[BatchReader, list[_Place]]] = deque()
        self._committed = monotonic()
        self._in_group = 0
        self._group = self.readers.limits.max_active
        # An engine that forms its own batches runs best with all reads of the shard; groups would
        # leave it idle at the end of each.
        if self.readers.answering.schedules_itself:
            self._group = sys.maxsize
        if self.slots:
            self.readers.load()  # before the threads start

    @property
    def is_idle(self) -> bool:
        """Whether no example waits for reads."""
        return not self._active

    def select(
        self, number: int, first: int, examples: Sequence[Example]
    ) -> Sequence[Selection | ExampleError]:
        """Returns the selections for the examples, from `first` on, on document `number`."""
        timeout = self.readers.limits.example_timeout
        try:
            self._enrich(number, examples)
        except ExampleError as error:
            return [ExampleError("task", e.fault) if e.fault else error for e in examples]
        selections: list[Selection | ExampleError] = []
        numbers = [(first + index,) for index in range(len(examples))]
        for part, is_deadly in self.attempts.parts("select", examples, numbers):
            if is_deadly:
                selections.append(ExampleError("retriever", self.attempts.cause))
            else:
                selections += select_document(self.stages, part, timeout)
        return selections

    def _enrich(self, number: int, examples: Sequence[Example]) -> None:
        valid = next((example for example in examples if not example.fault), None)
        if self.stages.enricher is None or valid is None:
            return
        enricher = EnricherRunner(self.readers, self.listener)
        self.attempts.start("enricher", number)
        with stage_errors("chunker"), time_limit(self.readers.limits.example_timeout):
            chunks = document_chunks(self.stages.chunker, valid)
        if chunks:
            enricher.prepare(chunks, number, self.store)

    def run(self, examples: Iterable[Example]) -> list[FinishedRow]:
        """Finishes examples, numbered in the order of the task; returns all rows of the store."""
        for number, (first, group) in enumerate(by_document(examples)):
            if self.store.done.issuperset(range(first, first + len(group))):
                self.skip(len(group))
            else:
                self.add(first, group, self.select(number, first, group))
        self.finish()
        return self.store.rows()

    def add(
        self, first: int, examples: Sequence[Example], selected: Sequence[Selection | ExampleError]
    ) -> None:
        """Starts the examples on a document; some examples of the shard may finish meanwhile."""
        for number, example, selection in zip(count(first), examples, selected, strict=False):
            self._make_room()
            if number not in self.store.done:
                self._start(number, example, selection)

    def skip(self, examples: int) -> None:
        """Counts examples of the store, which are part of the groups as in an uninterrupted run."""
        for _ in range(examples):
            self._make_room()

    def finish(self) -> None:
        """Finishes all active examples."""
        while self._active:
            self.wait()
        self.store.commit()

    def wait(self) -> None:
        """Reads the next batch, or waits for a reply to any shard; raises Stopped on request."""
        self.listener.before_step()
        if self.slots:
            self._wait_for_reply(self.slots)
        else:
            self._read_batch()

    def _make_room(self) -> None:
        if self.slots:
            while not self.slots.has_room:
                self.wait()
        # A group ends before the next one starts, so that a resumed shard forms the same batches.
        elif self._in_group == self._group:
            self.finish()
            self._in_group = 0
        self._in_group += 1

    # -- examples ------------------------------------------------------------------------------

    def _start(self, number: int, example: Example, selection: Selection | ExampleError) -> None:
        # Not read again: beside other prompts, the same prompt can decode to another text.
        stored = self.store.outputs(number)
        active = ActiveExample(self._scoring, number, example, selection)
        finished = active.advance()
        while stored and not finished:
            for index in [*active.unread]:
                if output := stored.pop(active.place + index, None):
                    row, note = output
                    active.reply(index, reply_of(row, active.reads[index]), note)
            if active.unread:
                break
            finished = active.advance()
        self._set_state(active, finished)
        # One transaction per example would cost more than an example without reads. A kill loses
        # only the examples since the last commit.
        if monotonic() - self._committed > _COMMIT:
            self._commit()

    def _set_state(self, active: ActiveExample, finished: FinishedRow | None) -> None:
        """Adds an example to the active ones if it waits for reads; otherwise stores it."""
        if finished:
            self._active.pop(active.number, None)
            self.store.finish(finished)
            self.listener.example(failed=finished.failed)
            return
        self._active[active.number] = active
        if self.slots:
            self._submit(self.slots, active)

    def _commit(self) -> None:
        self.store.commit()
        self._committed = monotonic()

    def _deliver(
        self, places: Sequence[_Place], notes: Mapping[int, str], replies: Sequence[Reply]
    ) -> None:
        """Stores the outputs of a batch, and sends them to examples whose step is complete."""
        rows = [
            (example, index, reply, notes.get(n, ""))
            for n, ((example, index), reply) in enumerate(zip(places, replies, strict=True))
        ]
        # Stored before any combiner receives them, so a resumed shard replays them (decision 3).
        self.store.add_batch(
            [(e.number, e.place + i, e.reads[i], reply, note) for e, i, reply, note in rows]
        )
        for example, index, reply, note in rows:
            example.reply(index, reply, note)
        for example in {example.number: example for example, _ in places}.values():
            if not example.unread:
                self._set_state(example, example.advance())
        self._commit()

    # -- batches -------------------------------------------------------------------------------

    def _read_batch(self) -> None:
        if not self._batches:
            self._batches.extend(self._next_batches())
        reader, places = self._batches.popleft()
        self.listener.reading(len(places))
        replies = self._read(reader, places)
        self.listener.has_read(reader.statistics)
        self.store.set_sizes(self.readers.sizes)
        self._deliver(places, reader.cured, replies)

    def _next_batches(self) -> Iterator[tuple[BatchReader, list[_Place]]]:
        """Yields the batches of the next step; retried examples have separate batches."""
        # A batch depends only on shard, pipeline and step: a resumed shard forms the same batches,
        # and needs no record of their order. Chains of 1 to 50 steps fill them worse:
        # `ChainOfAgents` needed 8 % more batches than with windows, and `MultiHop` 3 % fewer
        # (decision 49).
        order = min(map(self._order, self._active.values()))
        by_reader: dict[int, tuple[BatchReader, list[_Place]]] = {}
        # Sorted, since examples become active in the order in which others finish.
        for _, example in sorted(self._active.items()):
            for index in example.unread if self._order(example) == order else ():
                reader = self.readers.of(example.reads[index].role)
                by_reader.setdefault(id(reader), (reader, []))[1].append((example, index))
        for reader, places in by_reader.values():
            size = reader.batch_size
            for start in range(0, len(places), size):
                yield reader, places[start : start + size]

    def _order(self, example: ActiveExample) -> tuple[int, int]:
        # Retried examples run last and alone: they failed before, and must not fail batch mates.
        alone = example.number if example.number in self.store.alone else -1
        return alone, example.step

    def _read(self, reader: BatchReader, places: Sequence[_Place]) -> list[Reply]:
        """Reads a batch; if the batch has killed its workers, reads its reads one at a time."""
        replies: list[Reply] = []
        reads = [example.reads[index] for example, index in places]
        numbers = [(example.number, example.place + index) for example, index in places]
        for part, is_deadly in self.attempts.parts("read", reads, numbers):
            replies += [ReadError(self.attempts.cause)] if is_deadly else reader.read(part)
        return replies

    # -- slots ---------------------------------------------------------------------------------

    def _wait_for_reply(self, slots: Slots) -> None:
        self.listener.reading(slots.waiting)
        slots.wait()
        for statistics in self.readers.statistics.values():
            self.listener.has_read(statistics)

    def _submit(self, slots: Slots, example: ActiveExample) -> None:
        for index in [*example.unread]:
            reader = self.readers.of(example.reads[index].role)
            slots.submit(
                partial(reader.read, [example.reads[index]], in_slot=True),
                partial(self._deliver, [(example, index)], {}),
            )
