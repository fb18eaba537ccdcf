"""Throttle of requests to a server: their number and their start."""

from __future__ import annotations

import asyncio
import random

# Each answer adds 1/n to the n parallel requests, so n answers add one; each refusal subtracts a
# half, so n refusals halve the number, and a few refusals reduce it little.
_REFUSAL = 0.5
# If even single requests are refused, no request is sent for a time that grows with each round of
# refusals.
_FIRST_PAUSE = 0.05
_GROWTH = 1.5
_LONGEST_PAUSE = 60.0


class Throttle:
    """Starts requests in turn; refused requests wait after the others.

    Its methods are called on one event loop; `most` and `interval` may be set from any thread.

    Attributes:
        most: Maximum number of parallel requests.
        interval: Minimum number of seconds between the starts of requests.
    """

    def __init__(self, most: int, interval: float) -> None:
        """Allows `most` parallel requests until the server refuses one."""
        self.most, self.interval = most, interval
        self._limit = float(most)
        self._pending = 0
        self._turn, self._has_room = asyncio.Lock(), asyncio.Event()
        self._not_before = 0.0  # on the loop's clock, like all times here
        self._refused_at = 0.0  # beginning of the latest round of refusals
        self._refusals = 0  # rounds since the last answer
        self._silent_since: float | None = None  # time of the first of these rounds

    async def enter(self) -> None:
        """Waits until a request may start; the caller must then call `leave`."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            while (wait := self._not_before - loop.time()) > 0 or self._is_full():
                if wait > 0:
                    await asyncio.sleep(wait)
                else:
                    self._has_room.clear()
                    await self._has_room.wait()
            self._pending += 1
            self._not_before = loop.time() + self.interval

    def leave(self) -> None:
        """Makes room for another request."""
        self._pending -= 1
        self._has_room.set()

    def answered(self, *, slowly: bool) -> None:
        """Records an answer, which allows more requests unless it was slow."""
        self.reset_refusals()
        if slowly:
            self.overloaded()
        else:
            self._limit = min(self._limit + 1 / self._limit, float(self.most))

    def reset_refusals(self) -> None:
        """Resets the time for which there were only refusals."""
        self._refusals, self._silent_since = 0, None

    def overloaded(self) -> None:
        """Records that the server is overloaded, which reduces the requests."""
        self._limit = max(1.0, self._limit - _REFUSAL)

    def refused(self, started: float, wait: float | None) -> float:
        """Records a refusal; returns for how long there will have been only refusals.

        Args:
            started: Time of the start of the request, in seconds of the event loop's clock.
            wait: Seconds that the server asks to wait.
        """
        now = asyncio.get_running_loop().time()
        self.overloaded()
        if self._silent_since is None:
            self._silent_since = now
        if started >= self._refused_at:  # earlier requests belong to the last round
            self._refused_at, self._refusals = now, self._refusals + 1
            if wait is None and self._refusals > 1:
                longest = _FIRST_PAUSE * _GROWTH ** min(self._refusals - 2, 99)
                # Random, so that several processes do not return at the same moment.
                wait = random.uniform(0.5, 1.0) * min(longest, _LONGEST_PAUSE)
        self.rest(wait or 0.0)
        return max(now, self._not_before) - self._silent_since

    def rest(self, wait: float) -> None:
        """Delays the start of all requests by `wait` seconds."""
        until = asyncio.get_running_loop().time() + wait
        self._not_before = max(self._not_before, until)

    def _is_full(self) -> bool:
        return self._pending >= min(self.most, int(self._limit))
