"""HTTP session with a server, on a separate event loop."""

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

_LARGEST = 32 * 2**20  # bytes of a response, decompressed; a server may send without end


class Client:
    """Runs coroutines with an HTTP session, on an event loop in a separate thread.

    Callers of any thread wait for the result. A signal in their thread (a time limit, Ctrl-C)
    cancels the work; it is not raised inside the session, which might take it for a fault of the
    server.

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
        tasks, is_done = list[asyncio.Task[T]](), threading.Event()

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            self._tasks.add(tasks[0])
            tasks[0].add_done_callback(self._tasks.discard)
            tasks[0].add_done_callback(lambda _: is_done.set())

        self._loop.call_soon_threadsafe(begin)
        try:
            is_done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 -- the task exists only later
            is_done.wait()  # so that a new call does not join work that is being cancelled
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
        if self._thread is not threading.current_thread():  # which may collect garbage, too
            self._thread.join()

    async def request(
        self, method: str, path: str, timeout: float, body: bytes | FormData = b""
    ) -> bytes | ResponseFault:
        """Returns the body of a successful response, or the fault.

        Args:
            method: HTTP method.
            path: Path below the address.
            timeout: Maximum number of seconds in total, even if data keep arriving.
            body: JSON, or a form.
        """
        json = {"Content-Type": "application/json"}
        # Without redirects, which could send the key to another server.
        request = self._session.request(
            method,
            self.base_url + path,
            allow_redirects=False,
            headers=json if isinstance(body, bytes) else None,
            data=body,
        )
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
        status = response.status
        body = bytes(content)
        return body if status < SUCCESS else fault_of_status(status, response.headers, body)

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

    # No vendor's SDK: SDKs retry with waits of their own, which throttle, budget and patience
    # cannot see, and OpenAI's takes 30 MB (decision 44).
    url = urlsplit(base_url)
    # Not `trust_env` of aiohttp, which would also send servers credentials from ~/.netrc.
    proxy = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # requests are limited, not connections
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        proxy=proxy,
        timeout=aiohttp.ClientTimeout(),  # unlimited, since each request has a timeout
    )
