"""How many requests are under way at a server, and when the next may start."""

from __future__ import annotations

import asyncio
import random

# Each answer adds 1/n to the n requests that may be under way, so a round of n adds one; each
# refusal takes a half, so a round of refusals halves it, and a few in a round take little.
_REFUSAL = 0.5
# Where requests are refused one after another, no smaller number helps: then nothing is asked for
# a time that grows with every round of refusals.
_FIRST_PAUSE = 0.05
_GROWTH = 1.5
_LONGEST_PAUSE = 60.0


class Throttle:
    """Lets requests start, in turn: what was refused waits behind the others.

    Its methods are called on one event loop; `most` and `interval` may be set from any thread.

    Attributes:
        most: Number of requests that may be under way at once, however well the server bears them.
        interval: Seconds from the start of one request to the next, at the least.
    """

    def __init__(self, most: int, interval: float) -> None:
        """Begins with `most` requests: whoever asks for so many knows the server."""
        self.most, self.interval = most, interval
        self._bearable = float(most)
        self._under_way = 0
        self._turn, self._left = asyncio.Lock(), asyncio.Event()
        self._not_before = 0.0  # on the loop's clock, as all times here
        self._refused_at = 0.0  # beginning of the latest round of refusals
        self._refusals = 0  # rounds since the last answer
        self._silent_since: float | None = None  # the first of them

    async def enter(self) -> None:
        """Waits until a request may start; it must then `leave`."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            while (wait := self._not_before - loop.time()) > 0 or self._is_full():
                if wait > 0:
                    await asyncio.sleep(wait)
                else:
                    self._left.clear()
                    await self._left.wait()
            self._under_way += 1
            self._not_before = loop.time() + self.interval

    def leave(self) -> None:
        """Makes room for another request."""
        self._under_way -= 1
        self._left.set()

    def answered(self, *, slowly: bool) -> None:
        """Takes note of an answer: the server bears what it has and, if not `slowly`, more."""
        self.begin_anew()
        if slowly:
            self.overloaded()
        else:
            self._bearable = min(self._bearable + 1 / self._bearable, float(self.most))

    def begin_anew(self) -> None:
        """Forgets for how long there were only refusals."""
        self._refusals, self._silent_since = 0, None

    def overloaded(self) -> None:
        """Takes note that the server has too much to do."""
        self._bearable = max(1.0, self._bearable - _REFUSAL)

    def refused(self, started: float, wait: float | None) -> float:
        """Takes note of a refusal; returns for how long there will have been nothing else.

        Args:
            started: Time at which the request was sent, in seconds of the event loop's clock.
            wait: Seconds that the server asks to wait.
        """
        now = asyncio.get_running_loop().time()
        self.overloaded()
        if self._silent_since is None:
            self._silent_since = now
        if started >= self._refused_at:  # what was sent before the last round's end tells no more
            self._refused_at, self._refusals = now, self._refusals + 1
            if wait is None and self._refusals > 1:
                longest = _FIRST_PAUSE * _GROWTH ** min(self._refusals - 2, 99)
                wait = random.uniform(0.5, 1.0) * min(longest, _LONGEST_PAUSE)
        self.rest(wait or 0.0)
        return max(now, self._not_before) - self._silent_since

    def rest(self, wait: float) -> None:
        """Lets nothing start for so many seconds: what one request is told, all keep to."""
        until = asyncio.get_running_loop().time() + wait
        self._not_before = max(self._not_before, until)

    def _is_full(self) -> bool:
        return self._under_way >= min(self.most, int(self._bearable))
