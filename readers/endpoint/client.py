"""An HTTP session with a server, and the event loop that it lives on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from leporello.core.errors import UserError
from leporello.readers.endpoint.responses import Mode, Response

if TYPE_CHECKING:
    from aiohttp import ClientSession, FormData

T = TypeVar("T")
_JSON = {"Content-Type": "application/json"}


class Client:
    """Runs work with an HTTP session, on an event loop in a thread of its own.

    Callers, of any number of threads, wait in theirs: what signals raise there (a time limit,
    Ctrl-C) is never raised inside the session, which might take it for a fault of the server's;
    the work is cancelled instead.

    Attributes:
        base_url: Address of the server, `/v1` and all.
    """

    def __init__(self, base_url: str, key: Callable[[], str], mode: Mode = "chat") -> None:
        """Takes the server's address, what tells the key, empty for none, and the protocol."""
        self.base_url, self._key, self._mode = base_url.rstrip("/"), key, mode
        self._opening = threading.Lock()
        self._thread: threading.Thread | None = None
        # Set by the thread: its loop, the session, and what ends it.
        self._opened: Future[None]
        self._loop: asyncio.AbstractEventLoop
        self._session: ClientSession
        self._ended: asyncio.Event

    def open(self) -> None:
        """Opens the session, if it is not open.

        Raises:
            UserError: A package is not installed, or the key cannot be one.
        """
        with self._opening:
            if self._thread is None:
                connect, self._opened = (
                    _connecting(self.base_url, self._key(), self._mode),
                    Future(),
                )
                run = threading.Thread(target=asyncio.run, args=(self._live(connect),), daemon=True)
                run.name = "endpoint"
                run.start()
                self._thread = run
            self._opened.result()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Returns what the work returns; whatever interrupts the caller cancels it."""
        tasks, done = list[asyncio.Task[T]](), threading.Event()

        def begin() -> None:
            tasks.append(self._loop.create_task(work))
            tasks[0].add_done_callback(lambda _: done.set())

        self._loop.call_soon_threadsafe(begin)
        try:
            done.wait()
        except BaseException:
            self._loop.call_soon_threadsafe(lambda: tasks[0].cancel())  # noqa: PLW0108 -- begun by then
            done.wait()  # who asks again at once must not join what is being cancelled
            raise
        return tasks[0].result()

    def close(self) -> None:
        """Cancels all work and closes the connections; the session can be opened again."""
        with self._opening:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._loop.call_soon_threadsafe(self._ended.set)
                if thread is not threading.current_thread():  # where garbage is collected, too
                    thread.join()

    async def request(
        self, method: str, path: str, timeout: float, body: bytes | Mapping[str, bytes] = b""
    ) -> Response:
        """Returns the response as it came: what is in it is judged elsewhere.

        Args:
            method: HTTP's.
            path: Path below the address.
            timeout: Seconds that it may take in all.
            body: JSON, or the fields of a form, of which `file` is a file.
        """
        options: dict[str, Any] = {"headers": _JSON, "data": body}
        if isinstance(body, Mapping):
            options = {"data": _form(body)}
        # A key goes to the server that it was given for, and nowhere else.
        asked = self._session.request(
            method, self.base_url + path, allow_redirects=False, **options
        )
        async with asyncio.timeout(timeout), asked as response:
            return Response(response.status, response.headers, await response.read())

    async def _live(self, connect: Callable[[], ClientSession]) -> None:
        try:
            self._session = connect()
        except Exception as error:
            self._opened.set_exception(error)
            return
        async with self._session:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            self._opened.set_result(None)
            await self._ended.wait()


def check_url(base_url: str) -> None:
    """Refuses what is no address of a server; its parts may be keys, and are not repeated.

    Raises:
        ValueError: It is none, or has what must not stand in a file.
    """
    try:
        url = urlsplit(base_url)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise ValueError("base_url is no address: it is like http://127.0.0.1:8000/v1")
    if "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "base_url has a name, a password, or something after ? or #, and what a file gives is"
            " written to the run's files: leave it out, and give a key as api_key"
        )
    if url.path.rstrip("/").endswith("/completions"):
        raise ValueError("base_url ends before /chat/completions or /completions: leave that out")


def _form(fields: Mapping[str, bytes]) -> FormData:
    from aiohttp import FormData

    form = FormData()
    for name, value in fields.items():
        if name == "file":
            form.add_field(name, value, filename="requests.jsonl")
        else:
            form.add_field(name, value.decode())
    return form


def _connecting(base_url: str, key: str, mode: Mode) -> Callable[[], ClientSession]:
    """Returns what opens a session, to be called on the event loop."""
    import aiohttp

    if not (key.isascii() and key.isprintable()):
        raise UserError("api_key: the key has characters that no key has, such as a line's end")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if mode == "messages":
        headers = {"anthropic-version": "2023-06-01", **({"x-api-key": key} if key else {})}
    url = urlsplit(base_url)
    # Not aiohttp's own `trust_env`, which would also tell servers what a ~/.netrc holds for them.
    proxy = None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)
    return lambda: aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # requests are limited, not connections
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=headers,
        proxy=proxy,
        timeout=aiohttp.ClientTimeout(),  # none: each request has one
    )
