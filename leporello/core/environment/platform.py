"""Differences between operating systems; docs/platforms.md lists which ones are tested."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from types import FrameType
from typing import IO, TypeVar

from leporello.core.errors import UserError

T = TypeVar("T")

_handle = signal.signal  # by name: a stage may replace functions of `signal`
if sys.platform != "win32":
    _set_timer = signal.setitimer
_PR_SET_PDEATHSIG = 1  # prctl(2)
_ROUNDS = 2  # a process may start another one while the first round looks for them


def cores() -> int:
    """Returns the number of cores that this process may use."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return count or 1


def memory_free() -> int:
    """Returns the bytes of available memory; 0 if the system does not report them."""
    with suppress(OSError):  # the most precise number, only on Linux
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError):  # Windows has no such function
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 0


def unnamed_file() -> IO[bytes]:
    """Returns an empty file that a child process can inherit, in memory on Linux."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("leporello"), "r+b")
    return TemporaryFile()


def die_with_parent() -> None:
    """Makes Linux kill this process when its parent exits; elsewhere callers watch the parent."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # a libc without prctl
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_marked(variable: str) -> None:
    """Kills processes that have inherited the variable `NAME=value`; does so only on Linux."""
    if sys.platform != "linux":  # other systems do not show the variables of a process
        return
    for _ in range(_ROUNDS):
        has_found = False
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or belongs to another user
                if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
                    has_found = True
        if not has_found:
            return


@contextmanager
def alarm(
    seconds: float, again: float, ring: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Calls `ring` in the main thread after `seconds`, and then every `again` seconds."""
    if sys.platform == "win32":
        raise UserError("a time-out for examples needs a signal that Windows does not have")
    before = _handle(signal.SIGALRM, ring)
    _set_timer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        _set_timer(signal.ITIMER_REAL, 0)
        _handle(signal.SIGALRM, before)


def within(seconds: float, call: Callable[[], T]) -> T:
    """Returns the result of a call; after a TimeoutError, the call's thread continues to run."""
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    # A thread instead of a signal, since this also runs in threads of a server.
    threading.Thread(target=work, daemon=True).start()
    try:
        return future.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no complete answer within {seconds:g} s") from None
