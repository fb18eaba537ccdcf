"""Reads that go out as soon as there is room, for readers whose answers depend on no batch mates.

A server with 32 slots and answers of very different lengths is idle most of the time if 32 requests
wait for the slowest of them. Here a slot that is free is given the next read that waits, over all
shards that are open.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from queue import Empty, SimpleQueue

from leporello.core.errors import UserError
from leporello.core.records import Example, Output, Read
from leporello.engine.allowance import Admission, Allowance
from leporello.engine.attempts import TRIES
from leporello.engine.combining import ActiveCombiners, Advance
from leporello.engine.failures import ExampleError, ReadError
from leporello.engine.journal.journal import Journal
from leporello.engine.journal.serialization import Reply
from leporello.engine.progress import Listener
from leporello.engine.reading import WindowReader, WindowReaders
from leporello.engine.selection import Selection

_LOOK = 0.2  # seconds between looks at reads that may take too long


@dataclass(eq=False)
class _Order:
    """One thing to read in a thread.

    Attributes:
        read: Function that reads it, called in a thread.
        then: Function that takes the reply, in the main thread.
        began: Time at which a thread began it; None before.
        is_late: Whether its thread is waited for no more.
        is_answered: Whether a reply to it was handed over.
    """

    read: Callable[[], Reply]
    then: Callable[[Reply], None]
    began: float | None = None
    is_late: bool = False
    is_answered: bool = False


class Slots:
    """The reads under way in one process, each in a thread; who asked is told in the main thread.

    Attributes:
        count: Number of slots.
        timeout: Seconds that a read may take; None is no limit.
    """

    def __init__(self, count: int, timeout: float | None = None) -> None:
        self.count, self.timeout = count, timeout
        self.waiting = 0  # reads that have no reply, under way or not
        self._draining = False
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._under_way: set[_Order] = set()
        self._threads: list[threading.Thread] = []
        # Combiners and the journal know one thread alone: the one that calls `wait`.
        self._arrived: SimpleQueue[tuple[_Order, Reply | BaseException]] = SimpleQueue()

    def __enter__(self) -> Slots:
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        for _thread in self._threads:
            self._orders.put(None)

    @property
    def has_room(self) -> bool:
        """Whether more reads should be found: as many wait as slots would take next."""
        return self.waiting < 2 * self.count

    def submit(self, read: Callable[[], Reply], then: Callable[[Reply], None]) -> None:
        """Has something read, as soon as a slot is free.

        Args:
            read: Function that reads it, called in a thread.
            then: Function that takes the reply, in the thread that calls `wait`.
        """
        if self._draining:
            return
        self.waiting += 1
        self._orders.put(_Order(read, then))
        if len(self._threads) < min(self.count, self.waiting):
            self._start()

    def _start(self) -> None:
        # Not a pool of the library's: Python would wait for a read that never ends.
        self._threads.append(threading.Thread(target=self._work, name="reading", daemon=True))
        self._threads[-1].start()

    def wait(self) -> None:
        """Waits for a reply, and hands over all that have come.

        Raises:
            UserError: A mistake of the user's that a read met.
        """
        self._hand_over(*self._next())
        while not self._arrived.empty():
            self._hand_over(*self._arrived.get())

    def _next(self) -> tuple[_Order, Reply | BaseException]:
        """Returns the next reply; that a read has taken too long is one."""
        while True:
            with suppress(Empty):
                return self._arrived.get(timeout=self.timeout and min(self.timeout, _LOOK))
            for order in [*self._under_way]:
                if self._is_over(order):
                    order.is_late = True
                    self._start()  # in the place of the thread that it keeps
                    return order, ReadError(f"TimeoutError: took longer than {self.timeout:g} s")

    def _is_over(self, order: _Order) -> bool:
        began = order.began
        return bool(self.timeout and began and time.monotonic() - began > self.timeout)

    def _cancel(self) -> None:
        """Forgets what has not begun."""
        with suppress(Empty):
            while True:
                self.waiting -= self._orders.get_nowait() is not None

    def drain(self) -> None:
        """Takes the replies to what is under way; what has not begun is not read any more."""
        self._draining = True
        self._cancel()
        while self.waiting:
            with suppress(UserError):  # the first one has been told
                self._hand_over(*self._next())
        self._draining = False

    def _work(self) -> None:
        while order := self._orders.get():
            order.began = time.monotonic()
            self._under_way.add(order)
            reply: Reply | BaseException
            try:
                reply = order.read()
            except BaseException as error:  # raised again where the reply is awaited
                reply = error
            self._arrived.put((order, reply))
            if order.is_late:  # another thread has this one's place
                return

    def _hand_over(self, order: _Order, reply: Reply | BaseException) -> None:
        if order.is_answered:  # too late
            return
        order.is_answered = True
        self._under_way.discard(order)
        self.waiting -= 1
        if isinstance(reply, BaseException) and not isinstance(reply, ReadError):
            raise reply
        order.then(reply)


@dataclass
class _Active:
    """An example that waits for reads.

    Attributes:
        advance: State of the example, with the reads that it waits for.
        replies: Replies by their place in the round.
        allowance: Budget of the example; None if it has none.
    """

    advance: Advance
    replies: dict[int, Reply]
    allowance: Allowance | None


class SlidingEngine:
    """Runs one pipeline over the examples of one shard; see `Engine`, whose methods it has.

    Attributes:
        journal: Journal of the pipeline on the shard.
        readers: Readers by role, which are asked from several threads.
        combiners: Combiners under way.
        slots: Slots that are shared with other shards and pipelines.
        listener: Listener that is told of everything.
    """

    def __init__(
        self,
        journal: Journal,
        readers: WindowReaders,
        combiners: ActiveCombiners,
        slots: Slots,
        listener: Listener,
    ) -> None:
        self.journal, self.readers, self.combiners = journal, readers, combiners
        self.slots, self.listener = slots, listener
        self._active: dict[int, _Active] = {}
        readers.load()  # before there are threads

    def add_document(
        self, first: int, examples: Sequence[Example], selected: Sequence[Selection | ExampleError]
    ) -> None:
        """Takes in all examples on one document, waiting for room before each; see `Engine`.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
        """
        for number, example, selection in zip(
            itertools.count(first), examples, selected, strict=False
        ):
            if number in self.journal.done:
                continue
            while not self.slots.has_room:
                self.wait()
            recorded = self.journal.recorded(number)
            self._take(self.combiners.start(number, example, selection, recorded))

    def skip(self, count: int) -> None:
        """Does nothing: no window has to be made up again."""

    @property
    def is_idle(self) -> bool:
        """Whether no example is active."""
        return not self._active

    def finish(self) -> None:
        """Finishes what is active.

        Raises:
            UserError: As `add_document`.
        """
        while self._active:
            self.wait()

    def wait(self) -> None:
        """Waits for replies, of whichever shard.

        Raises:
            UserError: As `add_document`.
            Stopped: The run is to end.
        """
        self.listener.before_step()
        self.listener.reading(self.slots.waiting)
        self.slots.wait()
        for statistics in self.readers.statistics.values():
            self.listener.has_read(statistics)

    def _take(self, advance: Advance) -> None:
        """Sends out what an example wants read, or writes it down if it is finished."""
        if advance.line:
            self._active.pop(advance.number, None)
            self.journal.finish(advance.number, advance.line, failed=advance.failed)
            self.listener.example(failed=advance.failed)
            return
        active = _Active(advance, dict(advance.replies), self._allowance(advance))
        self._active[advance.number] = active
        if active.allowance:
            self._submit_next(active, active.allowance)
            return
        for index in range(len(advance.reads)):
            if index not in advance.replies:
                self._submit(advance, index)

    def _allowance(self, advance: Advance) -> Allowance | None:
        stages = self.combiners.stages
        if not stages.budget or advance.judges:
            return None
        said = [(advance.reads[index], reply) for index, reply in advance.replies.items()]
        calls = [*self.combiners.calls(advance.number), *said]
        return Allowance(stages.budget, stages, calls)

    def _submit_next(self, active: _Active, allowance: Allowance) -> None:
        """Sends out one read of an example that has a budget, which the next one depends on."""
        number, reads = active.advance.number, active.advance.reads
        index = next(n for n in range(len(reads)) if n not in active.replies)
        if allowance.ask(reads[index]) is Admission.READ:
            self._submit(active.advance, index)
        else:
            self._reply(number, index, allowance.refusal(reads[index]))

    def _submit(self, advance: Advance, index: int) -> None:
        reader = self.readers.of(advance.reads[index].role)
        read = partial(self._timed, reader, advance.reads[index])
        then = partial(self._reply, advance.number, index)
        attempts = self.combiners.attempts
        if not attempts.deaths:
            self.slots.submit(read, then)
            return
        # A worker has died over this shard: one read at a time, so that it is known which it was.
        deaths = attempts.begin("read", advance.number, advance.place + index)
        self.slots.submit(read if deaths < TRIES else lambda: ReadError(attempts.cause), then)
        while self.slots.waiting:
            self.wait()

    def _timed(self, reader: WindowReader, read: Read) -> Reply:
        """Reads in a thread; how long it took counts where the budget has seconds."""
        began = time.monotonic()
        reply = reader.read_one(read)
        if self.combiners.stages.budget.seconds is None or not isinstance(reply, Output):
            return reply
        return replace(reply, seconds=time.monotonic() - began)

    def _reply(self, number: int, index: int, reply: Reply) -> None:
        """Records what came of a read; the last of a round sends the example on."""
        active = self._active[number]
        advance = active.advance
        read: Read = advance.reads[index]
        self.journal.step(0, [(number, advance.place + index, read, reply)])
        active.replies[index] = reply
        if len(active.replies) == len(advance.reads):
            replies = [active.replies[position] for position in range(len(advance.reads))]
            self._take(self.combiners.send(number, replies))
        elif active.allowance:
            active.allowance.has_read(read, reply)
            self._submit_next(active, active.allowance)
