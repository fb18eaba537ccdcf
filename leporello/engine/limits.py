"""The numbers that limit a run, and the limit on how long a call may take.

The process that makes a call keeps its limit; a call that never comes back ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic, monotonic_ns  # by name: a stage may replace those of `time`
from types import FrameType
from typing import IO

from leporello.core.environment.platform import alarm
from leporello.core.errors import UserError
from leporello.core.records import JSON

_TIMEOUT = "example_timeout"  # decides about failures alone, so another value may go on
_GRACE = 10.0  # seconds beyond twice the limit after which the process is ended
_OUTSIDE = 2.0  # seconds after which whoever watches ends a process that has not ended itself
_AGAIN = 1.0  # seconds after which a call that swallowed the interruption is interrupted again

_deadline: IO[str] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of batches and shards, and the time that an example may take.

    Attributes:
        max_active: Hold at most this many examples of a shard in memory at once, with their
            documents.
        window: Read at most this many inputs in one batch, unless the reader asks for more.
        shard_examples: End a shard with the document that reaches this many examples.
        shard_bytes: End a shard with the document that reaches this many bytes of rows.
        example_timeout: Fail an example whose call of a stage takes longer than this.
    """

    max_active: int = 128
    window: int = 32
    shard_examples: int = 128
    shard_bytes: int = 32_000_000
    example_timeout: float | None = None

    def differences(self, earlier: Mapping[str, JSON]) -> tuple[str, ...]:
        """Returns in which numbers an earlier run's limits, as in its manifest, differ."""
        names = [field.name for field in fields(self) if field.name != _TIMEOUT]
        return tuple(
            f"limits.{name}: {earlier[name]!r} -> {getattr(self, name)!r}"
            for name in names
            if name in earlier and earlier[name] != getattr(self, name)
        )


def enforce_deadlines(file: Path) -> None:
    """Has calls that outlast their limit for long end this process, whatever they are at.

    Code that never comes back to the interpreter takes no interruption. Faulthandler's own thread
    needs none: it writes down what the process was at, and ends it. One that is stopped, or that
    has called this off, is ended from outside: see `is_overdue`.

    Args:
        file: Path of what is written then; empty until a deadline is enforced. Its time is the
            deadline, by the clock of `monotonic`; the time of day, which lies beyond, is none.
    """
    global _deadline  # noqa: PLW0603 -- one process has one alarm
    if _deadline is not None:
        _deadline.close()
    file.parent.mkdir(parents=True, exist_ok=True)
    _deadline = file.open("w")


def is_overdue(file: Path) -> bool:
    """Says whether a process has outlasted the deadline in its file, and notes it there."""
    try:
        if file.stat().st_mtime_ns >= monotonic_ns():
            return False
        file.write_text("ended from outside\n")
    except FileNotFoundError:  # nothing of the shard is under way
        return False
    return True


def forget_deadline(file: Path) -> None:
    """Has a deadline of a process that is gone hold for no other one; what it came to stays."""
    with suppress(FileNotFoundError):
        os.utime(file)


@contextmanager
def time_limit(seconds: float | None) -> Generator[None]:
    """Raises TimeoutError in the block once it has taken longer.

    Code that stays outside the interpreter is interrupted when it comes back. Limits do not nest.

    Args:
        seconds: Seconds that it may take; None is no limit.

    Raises:
        UserError: In another thread than the main one, where Python takes no signals.
    """
    own = os.getpid()
    try:
        with _limited(seconds) if seconds is not None else nullcontext():
            yield
    finally:
        if os.getpid() != own:  # a stage has forked: what it made is no second worker
            os._exit(0)


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        raise UserError("a time-out for examples works in the main thread only")

    over = False

    def ring(_: int, frame: FrameType | None) -> None:
        # A module that is left half imported is broken for good; the next alarm comes soon.
        if not over and not _is_importing(frame):
            raise TimeoutError(f"took longer than {seconds:g} s")

    with alarm(seconds, _AGAIN, ring):
        if _deadline is not None:
            left = 2 * seconds + _GRACE
            faulthandler.dump_traceback_later(left, exit=True, file=_deadline)
            _mark(_deadline, monotonic() + left + _OUTSIDE)
        try:
            yield
        finally:
            over = True  # an alarm that comes only now says nothing any more
            faulthandler.cancel_dump_traceback_later()
            if _deadline is not None:
                _mark(_deadline, None)


def _mark(file: IO[str], deadline: float | None) -> None:
    with suppress(OSError):  # a stage has closed it
        os.utime(file.fileno(), (deadline, deadline) if deadline else None)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def deadline_of(attempts: Path) -> Path:
    """Returns the file of a shard's deadline, by the file of its attempts."""
    return attempts.with_suffix(".deadline")
