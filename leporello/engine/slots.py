"""Slots: single reads that go out as soon as there is room, for readers that need no batches.

A server with 32 slots and answers of very different lengths is idle most of the time if 32 requests
wait for the slowest of them. Here a slot that is free is given the next read that waits, over all
shards that are open.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from leporello.core.errors import ReadError, UserError
from leporello.core.records import Reply

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
