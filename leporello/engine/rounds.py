"""Rounds: the reads of many examples, cut into batches, until every example is finished.

All examples of a group start. The reads of a step, in the order of example and place, are cut into
batches per reader; each example receives its outputs, and its next reads belong to its next step.
A batch is a function of the shard, the pipeline and the step, so a resumed shard forms the batches
that are left as an unbroken run would. Readers whose answers do not depend on their batch have
slots instead: each read is a batch, and goes out as soon as a slot is free.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import TypeAlias

from leporello.core.errors import ReadError
from leporello.core.records import Example, Output, Read, Reply
from leporello.engine.active_example import ActiveExample
from leporello.engine.combining import CombinerRunner
from leporello.engine.failures import ALONE, TRIES, Attempts, ExampleError
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener, Silent
from leporello.engine.reading import WindowReader, WindowReaders
from leporello.engine.results.finished import FinishedExample
from leporello.engine.results.serialization import reply_of
from leporello.engine.selection import Selection, by_document, select_document
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore

_COMMIT = 0.5  # seconds between commits of examples that need no reading

# A read: the example, and the place of the read in the example's round.
_Place: TypeAlias = tuple[ActiveExample, int]


@dataclass
class Rounds:
    """Runs one pipeline over the examples of one shard, which come in the order of the task.

    Attributes:
        runner: Runs the combiners.
        readers: Readers by role.
        store: Store of the pipeline on the shard.
        limits: Sizes of groups and batches.
        listener: Listener to the progress.
        slots: Slots for single reads, shared with other shards and pipelines; None reads batches.
    """

    runner: CombinerRunner
    readers: WindowReaders
    store: MemoryStore
    limits: Limits = field(default_factory=Limits)
    listener: Listener = field(default_factory=Silent)
    slots: Slots | None = None

    def __post_init__(self) -> None:
        self._active: dict[int, ActiveExample] = {}
        self._batches: deque[tuple[WindowReader, list[_Place]]] = deque()
        self._finished: deque[FinishedExample] = deque()
        self._committed = time.monotonic()
        self._in_group = 0
        self._group = self.limits.max_active
        if self.readers.answering.schedules_itself:
            self._group = sys.maxsize
        if self.slots:
            self.readers.load()  # before there are threads

    @property
    def attempts(self) -> Attempts:
        """Record of what is begun."""
        return self.runner.attempts

    @property
    def is_idle(self) -> bool:
        """Whether no example waits for reads."""
        return not self._active

    def add(
        self, first: int, examples: Sequence[Example], selected: Sequence[Selection | ExampleError]
    ) -> Iterator[FinishedExample]:
        """Starts the examples on one document; yields examples of the shard that finish meanwhile.

        Args:
            first: Number of the first example in the task; those that the store holds are skipped.
            examples: Examples in the order of the task.
            selected: Selection for each, or the error that prevented it.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
        """
        for number, example, selection in zip(count(first), examples, selected, strict=False):
            yield from self._make_room()
            if number not in self.store.done:
                self._start(number, example, selection)
        yield from self._newly_finished()

    def skip(self, examples: int) -> Iterator[FinishedExample]:
        """Counts examples that the store holds: they were in their group, too."""
        for _ in range(examples):
            yield from self._make_room()

    def finish(self) -> Iterator[FinishedExample]:
        """Finishes all examples that are active, and yields them.

        Raises:
            UserError: As `add`.
        """
        while self._active:
            self.wait()
            yield from self._newly_finished()
        yield from self._newly_finished()  # while another shard waited for a reply in its slots
        self.store.commit()

    def wait(self) -> None:
        """Reads the next batch, or waits for the reply to a read of any shard.

        Raises:
            UserError: As `add`.
            Stopped: The run is to end.
        """
        self.listener.before_step()
        if self.slots:
            self._wait_for_reply(self.slots)
        else:
            self._read_batch()

    def _make_room(self) -> Iterator[FinishedExample]:
        """Waits until another example may start."""
        if self.slots:
            while not self.slots.has_room:
                self.wait()
        elif self._in_group == self._group:
            yield from self.finish()
            self._in_group = 0
        self._in_group += 1

    # -- examples ------------------------------------------------------------------------------

    def _start(self, number: int, example: Example, selection: Selection | ExampleError) -> None:
        """Starts an example, and goes as far as stored outputs reach."""
        stored = self.store.outputs(number)
        state = self.runner.start(number, example, selection)
        while stored and isinstance(state, ActiveExample):
            for index in [*state.unread]:
                if output := stored.pop(state.place + index, None):
                    row, note = output
                    state.reply(index, reply_of(row, state.reads[index]), note)
            if state.unread:
                break
            state = self.runner.go_on(state)
        self._keep(state)
        if time.monotonic() - self._committed > _COMMIT:
            self._commit()

    def _keep(self, state: ActiveExample | FinishedExample) -> None:
        """Keeps an example that waits for reads, or stores a finished one."""
        if isinstance(state, ActiveExample):
            self._active[state.number] = state
            if self.slots:
                self._submit(self.slots, state)
            return
        self._active.pop(state.number, None)
        self.store.finish(state)
        self._finished.append(state)
        self.listener.example(failed=state.failure is not None)

    def _newly_finished(self) -> Iterator[FinishedExample]:
        while self._finished:
            yield self._finished.popleft()

    def _commit(self) -> None:
        self.store.commit()
        self._committed = time.monotonic()

    def _take(
        self, places: Sequence[_Place], replies: Sequence[Reply], notes: Sequence[str]
    ) -> None:
        """Stores the outputs of a batch, and sends them to examples whose step is complete."""
        # Before any combiner receives them: a resumed shard replays them (decision 3).
        self.store.add_batch(
            [
                (example.number, example.place + index, example.reads[index], reply)
                for (example, index), reply in zip(places, replies, strict=True)
            ],
            {index: note for index, note in enumerate(notes) if note},
        )
        for (example, index), reply, note in zip(places, replies, notes, strict=True):
            example.reply(index, reply, note)
        for example in {example.number: example for example, _ in places}.values():
            if not example.unread:
                self._keep(self.runner.go_on(example))
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
        self._take(places, replies, [reader.cured.get(n, "") for n in range(len(places))])

    def _next_batches(self) -> Iterator[tuple[WindowReader, list[_Place]]]:
        """Yields the batches of the next step; an example that failed before has its own."""
        order = min(map(self._order, self._active.values()))
        by_reader: dict[int, tuple[WindowReader, list[_Place]]] = {}
        for example in (
            one for _, one in sorted(self._active.items()) if self._order(one) == order
        ):
            for index in example.unread:
                reader = self.readers.of(example.reads[index].role)
                by_reader.setdefault(id(reader), (reader, []))[1].append((example, index))
        for reader, places in by_reader.values():
            size = reader.window(self.limits.window)
            for start in range(0, len(places), size):
                yield reader, places[start : start + size]

    def _order(self, example: ActiveExample) -> tuple[int, int]:
        alone = example.number if example.number in self.store.alone else -1
        return alone, example.step

    def _read(self, reader: WindowReader, places: Sequence[_Place]) -> list[Reply]:
        """Reads a batch; its seconds count where the budget has seconds."""
        began = time.monotonic()
        replies = self._read_safely(reader, places)
        if self.runner.stages.budget.seconds is None:
            return replies
        seconds = (time.monotonic() - began) / len(places)
        return [replace(r, seconds=seconds) if isinstance(r, Output) else r for r in replies]

    def _read_safely(self, reader: WindowReader, places: Sequence[_Place]) -> list[Reply]:
        """Reads a batch; one that has killed its worker before, read by read."""
        example, index = places[0]
        deaths = self.attempts.begin("window", example.number, example.place + index)
        if deaths < TRIES:
            return reader.read([example.reads[index] for example, index in places])
        return [self._read_alone(reader, *place) for place in places]

    def _read_alone(self, reader: WindowReader, example: ActiveExample, index: int) -> Reply:
        deaths = self.attempts.begin("read", example.number, example.place + index)
        if deaths >= ALONE:
            return ReadError(self.attempts.cause)
        return reader.read([example.reads[index]])[0]

    # -- slots ---------------------------------------------------------------------------------

    def _wait_for_reply(self, slots: Slots) -> None:
        self.listener.reading(slots.waiting)
        slots.wait()
        for statistics in self.readers.statistics.values():
            self.listener.has_read(statistics)

    def _submit(self, slots: Slots, example: ActiveExample) -> None:
        """Gives the reads of an example's step to the slots."""
        for index in [*example.unread]:
            reader = self.readers.of(example.reads[index].role)
            read = partial(self._timed, reader, example.reads[index])
            then = partial(self._reply, example, index)
            if not self.attempts.deaths:
                slots.submit(read, then)
                continue
            # A worker has died over this shard: one read at a time shows which read it was.
            deaths = self.attempts.begin("read", example.number, example.place + index)
            slots.submit(read if deaths < TRIES else self._refuse, then)
            while slots.waiting:
                self.wait()

    def _refuse(self) -> Reply:
        return ReadError(self.attempts.cause)

    def _timed(self, reader: WindowReader, read: Read) -> Reply:
        """Reads in a thread; its seconds count where the budget has seconds."""
        began = time.monotonic()
        reply = reader.read_one(read)
        if self.runner.stages.budget.seconds is None or not isinstance(reply, Output):
            return reply
        return replace(reply, seconds=time.monotonic() - began)

    def _reply(self, example: ActiveExample, index: int, reply: Reply) -> None:
        self._take([(example, index)], [reply], [""])


def rounds(
    run: Rounds, examples: Iterable[Example], timeout: float | None = None
) -> Iterator[FinishedExample]:
    """Yields the examples that are not finished yet, as each finishes.

    Args:
        run: Pipeline and store.
        examples: Examples in the order of the task, numbered from 0.
        timeout: Seconds that a call of a stage may take for each example in it; None is no limit.

    Raises:
        UserError: A mistake of the user's; what is finished stays finished.
    """
    for first, group in by_document(examples):
        if run.store.done.issuperset(range(first, first + len(group))):
            yield from run.skip(len(group))
            continue
        selected = select_document(run.runner.stages, group, timeout)
        yield from run.add(first, group, selected.selections)
    yield from run.finish()


def exhaust(finished: Iterator[FinishedExample]) -> int:
    """Runs to the end, and returns the number of examples that finished."""
    return sum(1 for _ in finished)
