"""What differs from one operating system to another; docs/platforms.md says what was run where."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from leporello.core.errors import UserError

_PR_SET_PDEATHSIG = 1  # prctl(2)
_PROCESS_QUERY_LIMITED_INFORMATION = 0x1000  # OpenProcess


def cores() -> int:
    """Returns how many cores this process may use."""
    found = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    return found or 1


def memory_free() -> int:
    """Returns the bytes of memory that are free, or may be made so; 0 where nothing tells."""
    with suppress(OSError):  # Linux says best
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(AttributeError):  # Windows has no such function
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return 0


def peak_memory() -> int:
    """Returns the most bytes of memory that this process has had; 0 where nothing tells."""
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # macOS counts bytes, others KiB


def limit_memory(limit: int) -> None:
    """Has this process get no more memory than so many bytes; 0 is no limit.

    Raises:
        UserError: Windows cannot.
    """
    if not limit:
        return
    if sys.platform == "win32":
        raise UserError("worker_memory: Windows limits no process's memory; leave it out")
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def die_with_parent() -> None:
    """Has Linux kill this process when its parent is gone; elsewhere whoever calls has to look."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):  # a libc without it
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def is_alive(process: int) -> bool:
    """Says whether a process of this machine lives."""
    if sys.platform == "win32":  # where os.kill with 0 would end it
        import ctypes

        handle = ctypes.windll.kernel32.OpenProcess(_PROCESS_QUERY_LIMITED_INFORMATION, 0, process)
        ctypes.windll.kernel32.CloseHandle(handle)
        return bool(handle)
    try:
        os.kill(process, 0)
    except PermissionError:  # another user's
        return True
    except ProcessLookupError:
        return False
    return True


@contextmanager
def alarm(
    seconds: float, again: float, ring: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Interrupts the main thread within the block.

    Args:
        seconds: Seconds until it is interrupted first.
        again: Seconds between that and further times.
        ring: Function that is called then, as a handler of signals.

    Raises:
        UserError: Windows has no such signal.
    """
    if sys.platform == "win32":
        raise UserError("a time-out for examples needs a signal that Windows does not have")
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
