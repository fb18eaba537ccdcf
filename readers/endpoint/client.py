"""An HTTP session with a server, on an event loop of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError, Future
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
    from aiohttp import ClientSession, FormData

T = TypeVar("T")


class Client:
    """Runs work with an HTTP session, on an event loop in a thread of its own.

    Callers of any number of threads wait in theirs. A signal there (a time limit, Ctrl-C) is never
    raised inside the session, which might take it for a fault of the server; the work is cancelled
    instead.

    Attributes:
        base_url: Address of the server, with `/v1`.
    """

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        """Opens the session with headers for every request."""
        self.base_url = base_url
        self._tasks: set[asyncio.Task[Any]] = set()
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
        """Returns the result of the work; an interruption of the caller cancels it.

        Raises:
            CancelledError: It was cancelled from another thread.
        """
        tasks, done = list[asyncio.Task[T]](), threading.Event()

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            self._tasks.add(tasks[0])
            tasks[0].add_done_callback(self._tasks.discard)
            tasks[0].add_done_callback(lambda _: done.set())

        self._loop.call_soon_threadsafe(begin)
        try:
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 -- made by then
            done.wait()  # a caller that asks again at once must not join what is being cancelled
            raise
        if tasks[0].cancelled():
            raise CancelledError
        return tasks[0].result()

    def cancel(self) -> None:
        """Cancels all work; its callers get a `CancelledError`."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])

    def close(self) -> None:
        """Cancels all work and closes the connections."""
        self._loop.call_soon_threadsafe(self._ended.set)
        if self._thread is not threading.current_thread():  # where garbage is collected, too
            self._thread.join()

    async def request(
        self, method: str, path: str, timeout: float, body: bytes | FormData = b""
    ) -> bytes | ResponseFault:
        """Returns the body of the response, or why there is none that is a success.

        Args:
            method: HTTP's.
            path: Path below the address.
            timeout: Seconds that it may take in all, however it trickles.
            body: JSON, or a form.
        """
        json = {"Content-Type": "application/json"}
        # A key goes to the server that it was given for, and nowhere else.
        asked = self._session.request(
            method,
            self.base_url + path,
            allow_redirects=False,
            headers=json if isinstance(body, bytes) else None,
            data=body,
        )
        try:
            async with asyncio.timeout(timeout), asked as response:
                content = await response.read()
        except Exception as error:
            return fault_of_error(error, self.base_url, timeout)
        status = response.status
        return content if status < SUCCESS else fault_of_status(status, response.headers, content)

    async def _live(self, headers: Mapping[str, str], opened: Future[None]) -> None:
        try:
            self._session = _session(self.base_url, headers)
        except Exception as error:
            opened.set_exception(error)
            return
        async with self._session:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            opened.set_result(None)
            await self._ended.wait()


def _session(base_url: str, headers: Mapping[str, str]) -> ClientSession:
    import aiohttp

    url = urlsplit(base_url)
    # Not aiohttp's own `trust_env`, which would also send servers what a ~/.netrc holds for them.
    proxy = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # requests are limited, not connections
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        proxy=proxy,
        timeout=aiohttp.ClientTimeout(),  # none: each request has one
    )
