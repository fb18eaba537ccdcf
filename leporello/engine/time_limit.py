"""A limit on how long a call may take, kept by the process that makes the call."""

from __future__ import annotations

import faulthandler
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from leporello.core.environment.platform import alarm
from leporello.core.errors import UserError

_GRACE = 10.0  # seconds beyond twice the limit after which the process is ended
_AGAIN = 1.0  # seconds after which a call that swallowed the interruption is interrupted again


_deadline: IO[str] | None = None


def enforce_deadlines(file: Path) -> None:
    """Has calls that outlast their limit for long end this process, whatever they are at.

    Code that never comes back to the interpreter takes no interruption. Faulthandler's own thread
    needs none: it writes down what the process was at, and ends it.

    Args:
        file: Path of what is written then; empty until a deadline is enforced.
    """
    global _deadline  # noqa: PLW0603 -- one process has one alarm
    if _deadline is not None:
        _deadline.close()
    file.parent.mkdir(parents=True, exist_ok=True)
    _deadline = file.open("w")


@contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raises TimeoutError in the block once it has taken longer.

    Code that stays outside the interpreter is interrupted when it comes back. Limits do not nest.

    Args:
        seconds: Seconds that it may take; None is no limit.

    Raises:
        UserError: In another thread than the main one, where Python takes no signals.
    """
    if seconds is None:
        yield
        return
    if threading.current_thread() is not threading.main_thread():
        raise UserError("a time-out for examples works in the main thread only")

    over = False

    def ring(_: int, frame: FrameType | None) -> None:
        # A module that is left half imported is broken for good; the next alarm comes soon.
        if not over and not _is_importing(frame):
            raise TimeoutError(f"took longer than {seconds:g} s")

    with alarm(seconds, _AGAIN, ring):
        if _deadline is not None:
            faulthandler.dump_traceback_later(2 * seconds + _GRACE, exit=True, file=_deadline)
        try:
            yield
        finally:
            over = True  # an alarm that comes only now says nothing any more
            faulthandler.cancel_dump_traceback_later()


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
