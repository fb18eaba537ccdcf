"""The official client, and the event loop that it lives on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from leporello.errors import UserError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["Client", "check_url"]

# What servers are sent that want no key. Without one the official client takes what the
# environment has, and would tell it to whatever server this is.
_NO_KEY = "EMPTY"

T = TypeVar("T")


class Client:
    """Runs work with the official client, in a thread that lives as long as the work does.

    The caller waits in its own thread: what signals raise there (a time limit, Ctrl-C) is never
    raised inside the client, which might take it for a fault of the server's; the work is
    cancelled instead. Between two runs there is no thread, but connections stay open.
    """

    def __init__(self, base_url: str, key: Callable[[], str]) -> None:
        """Takes the server's address, `/v1` and all, and what tells the key, empty for none."""
        self._base_url, self._key = base_url, key
        self._running = threading.Lock()
        # Taken out while work runs. A thread that is left alone, since its caller was interrupted
        # once more, keeps what it runs on; the next run opens anew.
        self._open: tuple[asyncio.AbstractEventLoop, AsyncOpenAI] | None = None

    def open(self) -> None:
        """Makes the client, which is otherwise done when work first runs.

        Raises:
            UserError: Its package is not installed, or the key cannot be one.
        """
        with self._running:
            self._open = self._open or self._made()

    def run(self, work: Callable[[AsyncOpenAI], Coroutine[Any, Any, T]]) -> T:
        """Returns what the work returns; whatever interrupts the caller cancels it.

        Raises:
            UserError: As `open` does.
        """
        with self._running:
            (loop, client), self._open = self._open or self._made(), None
            task, done = loop.create_task(work(client)), threading.Event()
            thread = threading.Thread(
                target=_finish, args=(loop, task, done), name="endpoint", daemon=True
            )
            try:
                thread.start()
                done.wait()
            except BaseException:
                loop.call_soon_threadsafe(task.cancel)
                raise
            finally:
                if thread.ident is not None:
                    done.wait()  # no `join`: one that was interrupted takes the thread for ended
                    self._open = loop, client
            return task.result()

    def close(self) -> None:
        """Closes the connections; another run opens new ones."""
        if opened := self._open:
            self._open = None
            _apart(lambda: _close(*opened))

    def _made(self) -> tuple[asyncio.AbstractEventLoop, AsyncOpenAI]:
        client = _connect(self._base_url, self._key())
        return asyncio.new_event_loop(), client


def check_url(base_url: str) -> None:
    """Refuses what is no address of a server; its parts may be keys, and are not repeated.

    Raises:
        ValueError: It is none, or has what must not stand in a file.
    """
    try:
        url = urlsplit(base_url)
        known = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        known = False
    if not known:
        raise ValueError("base_url is no address: it is like http://127.0.0.1:8000/v1")
    if "@" in url.netloc or url.query or url.fragment:
        raise ValueError(
            "base_url has a name, a password, or something after ? or #, and what a file gives is"
            " written to the run's files: leave it out, and give a key as api_key"
        )
    if url.path.rstrip("/").endswith("/completions"):
        raise ValueError("base_url ends before /chat/completions or /completions: leave that out")


def _connect(base_url: str, key: str) -> AsyncOpenAI:
    """Returns the official client, which neither retries nor limits time: that is done here."""
    try:
        import openai
    except ModuleNotFoundError as error:
        if error.name != "openai":
            raise
        raise UserError(
            "the reader Endpoint needs the package openai, which is not installed here: install"
            " the extra 'endpoint' with pip install -e '.[endpoint]'"
        ) from None
    if not (key.isascii() and key.isprintable()):
        raise UserError("api_key: the key has characters that no key has, such as a line's end")
    return openai.AsyncOpenAI(
        base_url=base_url, api_key=key or _NO_KEY, max_retries=0, timeout=None
    )


def _finish(
    loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], done: threading.Event
) -> None:
    # Names are looked up in threads; those of the loop's own pool would outlive the work.
    names = ThreadPoolExecutor(4, thread_name_prefix="endpoint-names")
    loop.set_default_executor(names)
    try:
        with suppress(BaseException):  # raised where the task's result is asked for
            loop.run_until_complete(task)
    finally:
        names.shutdown(wait=False, cancel_futures=True)
        done.set()


def _close(loop: asyncio.AbstractEventLoop, client: AsyncOpenAI) -> None:
    loop.run_until_complete(client.close())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _apart(close: Callable[[], None]) -> None:
    """Calls this; in another thread where this one runs an event loop, as notebooks do."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        close()
        return
    thread = threading.Thread(target=close)
    thread.start()
    thread.join()
