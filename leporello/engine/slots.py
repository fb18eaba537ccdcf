"""Slots: start each read as soon as a slot is free, for readers that need no batches.

If a server received batches of 32 requests, it would be idle most of the time, waiting for the
longest answer of each batch. A free slot receives the next waiting read of any open shard instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic  # by name: a stage may replace functions of `time`
from typing import TypeAlias

from leporello.core.errors import ReadError, UserError
from leporello.core.records import Reply

Replies: TypeAlias = Sequence[Reply]  # of one read

_INTERVAL = 0.2  # seconds between checks for reads that take too long


@dataclass(eq=False)
class _PendingRead:
    read: Callable[[], Replies]  # function that computes the reply, called in a thread
    then: Callable[[Replies], None]  # function that receives the reply, called in the main thread
    started_at: float | None = None  # time at which a thread started the read; None before
    is_late: bool = False  # whether the read has timed out
    is_answered: bool = False  # whether a reply was delivered


class Slots:
    """Threads that read in one process; replies are delivered in the main thread.

    `timeout` is the number of seconds that a read may take; None sets no limit.
    """

    def __init__(self, count: int, timeout: float | None = None) -> None:
        self.count, self.timeout = count, timeout
        self.waiting = 0  # reads without a reply, started or not
        self._draining = False
        self._queue: SimpleQueue[_PendingRead | None] = SimpleQueue()
        self._started: set[_PendingRead] = set()
        self._threads: list[threading.Thread] = []
        # Combiners and the store are not thread-safe: only the thread that calls `wait` uses them.
        self._arrived: SimpleQueue[tuple[_PendingRead, Replies | BaseException]] = SimpleQueue()

    def __enter__(self) -> Slots:
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()
        for _thread in self._threads:
            self._queue.put(None)  # ends a thread

    @property
    def has_room(self) -> bool:
        """Whether more reads should be submitted; as many reads as slots may wait in the queue."""
        # As many again in the queue, so a free slot never waits for the main thread to select.
        return self.waiting < 2 * self.count

    def submit(self, read: Callable[[], Replies], then: Callable[[Replies], None]) -> None:
        """Submits a read for the next free slot; `then` receives the reply, during `wait`."""
        # The run is ending; another read would cost money for an answer that nobody receives.
        if self._draining:
            return
        self.waiting += 1
        self._queue.put(_PendingRead(read, then))
        if len(self._threads) < min(self.count, self.waiting):
            self._start()

    def _start(self) -> None:
        # Not a ThreadPoolExecutor: at exit Python would wait for a read that never ends.
        self._threads.append(threading.Thread(target=self._work, name="reading", daemon=True))
        self._threads[-1].start()

    def wait(self) -> None:
        """Waits for a reply, and delivers all that have arrived; raises a read's UserError."""
        self._deliver(*self._next())
        while not self._arrived.empty():
            self._deliver(*self._arrived.get())

    def _next(self) -> tuple[_PendingRead, Replies | BaseException]:
        """Returns the next reply; a read that takes too long has an error as its reply."""
        while True:
            with suppress(Empty):
                return self._arrived.get(timeout=self.timeout and min(self.timeout, _INTERVAL))
            for pending in [*self._started]:
                started = pending.started_at
                if self.timeout and started and monotonic() - started > self.timeout:
                    # Python cannot end a thread: a late one is abandoned.
                    pending.is_late = True
                    self._start()  # replaces the blocked thread
                    fault = f"TimeoutError: took longer than {self.timeout:g} s"
                    return pending, [ReadError(fault)]

    def _cancel(self) -> None:
        """Discards reads that have not started."""
        with suppress(Empty):
            while True:
                self.waiting -= self._queue.get_nowait() is not None

    def drain(self) -> None:
        """Delivers the replies to reads that have started, and discards the others."""
        self._draining = True
        self._cancel()
        while self.waiting:
            with suppress(UserError):  # the first error was reported
                self._deliver(*self._next())
        self._draining = False

    def _work(self) -> None:
        while pending := self._queue.get():
            pending.started_at = monotonic()
            self._started.add(pending)
            reply: Replies | BaseException
            try:
                reply = pending.read()
            except BaseException as error:  # raised again by `wait`
                reply = error
            self._arrived.put((pending, reply))
            if pending.is_late:  # another thread has replaced this one
                return

    def _deliver(self, pending: _PendingRead, reply: Replies | BaseException) -> None:
        if pending.is_answered:  # this reply came too late
            return
        pending.is_answered = True
        self._started.discard(pending)
        self.waiting -= 1
        if isinstance(reply, BaseException):
            raise reply
        pending.then(reply)
