"""HTTP session with a server on a separate event loop, and a throttle of its requests."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from leporello.readers.endpoint.responses import (
    SUCCESS,
    ResponseFault,
    fault_of_error,
    fault_of_status,
)

if TYPE_CHECKING:
    from aiohttp import ClientSession


T = TypeVar("T")

_LARGEST = 32 * 2**20  # bytes of a response, decompressed; a server may send without end


class Client:
    """Runs coroutines with an HTTP session, on an event loop in a separate thread.

    Callers of any thread wait for the result. A signal in their thread (a time limit, Ctrl-C)
    cancels the work; it is not raised inside the session, which might take it for a fault of the
    server.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        """Opens the session with headers for every request."""
        self.base_url = base_url
        self._main: asyncio.Task[None] | None
        self._loop: asyncio.AbstractEventLoop
        self._session: ClientSession
        self._ended: asyncio.Event
        opened: Future[None] = Future()
        live = self._live(headers, opened)
        self._thread = threading.Thread(target=asyncio.run, args=(live,), daemon=True)
        self._thread.name = "endpoint"
        self._thread.start()
        opened.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns the result of the work; an interruption of the caller cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def cancel(self) -> None:
        """Cancels all work; its callers get a `CancelledError`."""
        self._loop.call_soon_threadsafe(self._cancel_all)

    def close(self) -> None:
        """Cancels all work and closes the connections."""
        self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not threading.current_thread():  # which may collect garbage, too
            self._thread.join()

    async def post(self, path: str, timeout: float, body: bytes) -> bytes | ResponseFault:
        """Sends JSON; returns the body of a successful response, or the fault."""
        # Without redirects, which could send the key to another server.
        request = self._session.post(self.base_url + path, allow_redirects=False, data=body)
        try:
            async with asyncio.timeout(timeout), request as response:
                content = bytearray()
                async for block in response.content.iter_any():
                    content += block
                    if len(content) > _LARGEST:
                        response.close()
                        return ResponseFault(f"the server's answer exceeds {_LARGEST:,} bytes")
        except Exception as error:
            return fault_of_error(error, self.base_url, timeout)
        status, answer = response.status, bytes(content)
        return answer if status < SUCCESS else fault_of_status(status, response.headers, answer)

    def _cancel_all(self) -> None:
        for task in asyncio.all_tasks() - {self._main}:
            task.cancel()

    async def _live(self, headers: Mapping[str, str], opened: Future[None]) -> None:
        try:
            self._session = _session(self.base_url, headers)
        except Exception as error:
            opened.set_exception(error)
            return
        async with self._session:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            self._main = asyncio.current_task()
            opened.set_result(None)
            await self._ended.wait()


def _session(base_url: str, headers: Mapping[str, str]) -> ClientSession:
    import aiohttp

    # No vendor's SDK: SDKs retry with waits of their own, which throttle, budget and patience
    # cannot see, and OpenAI's takes 30 MB (decision 44).
    url = urlsplit(base_url)
    # Not `trust_env` of aiohttp, which would also send servers credentials from ~/.netrc.
    proxy = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # requests are limited, not connections
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={**headers, "Content-Type": "application/json"},
        proxy=proxy,
        timeout=aiohttp.ClientTimeout(),  # unlimited, since each request has a timeout
    )


# Each answer adds 1/n to the n parallel requests, so n answers add one; each refusal subtracts a
# half, so n refusals halve the number, and a few refusals reduce it little.
_REFUSAL = 0.5
# If even single requests are refused, all requests pause, for longer with each round of refusals.
_FIRST_PAUSE = 0.05
_GROWTH = 1.5
_LONGEST_PAUSE = 60.0


class Throttle:
    """Starts requests in turn; refused requests wait after the others.

    Its methods are called on one event loop; `most` may be set from any thread.
    """

    def __init__(self, most: int) -> None:
        """Allows `most` parallel requests until the server refuses one."""
        self.most = most
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
            while (wait := self._not_before - loop.time()) > 0 or (
                self._pending >= min(self.most, int(self._limit))
            ):
                if wait > 0:
                    await asyncio.sleep(wait)
                else:
                    self._has_room.clear()
                    await self._has_room.wait()
            self._pending += 1

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
        """Records a refusal; returns for how long there will have been only refusals, in s."""
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
