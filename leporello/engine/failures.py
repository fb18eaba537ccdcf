"""Failures of stages: errors, calls that take too long, and deaths of workers.

The process that makes a call keeps its limit; a call that never comes back ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic  # by name: a stage may replace those of `time`
from types import FrameType, TracebackType
from typing import IO, TypeAlias

from leporello.core.environment import signals
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.core.environment.platform import alarm
from leporello.core.errors import ReadError, Stopped, UserError
from leporello.core.files import in_utf8
from leporello.core.secrets import redact

_LONGEST = 5_000  # characters of an error; ten times as many of a traceback
CURED = "failed with others, and not alone"  # a fault; what lack of memory explains is none
TRIES = 3  # deaths after which something is done in its smallest parts, or fails if it is one
ALONE = 1  # deaths after which such a part fails: the whole has had its tries

# What is begun: its kind, the place of its pipeline in the batch, and numbers that name it.
Phase: TypeAlias = tuple[str | int, ...]

_GRACE = 10.0  # seconds beyond twice the limit after which the process is ended
_OUTSIDE = 2.0  # seconds after which whoever watches ends a process that has not ended itself
_AGAIN = 1.0  # seconds after which a call that swallowed the interruption is interrupted again

_deadline: IO[str] | None = None


def note_of_cure(stage: str, error: BaseException, message: str) -> str:
    """Returns the note on what failed with others and did not alone.

    Args:
        stage: Name of the stage.
        error: Error that it raised when all were asked together.
        message: Text of the error.
    """
    full = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"  # torch's
    kind = "was done in smaller parts, since memory did not suffice" if full else CURED
    return f"{kind} ({stage}: {message.partition(chr(10))[0]})"


class ExampleError(Exception):
    """An example failed; made of texts, so that it passes between processes.

    Attributes:
        stage: Name of the stage that failed: a key of a pipeline, `task` or `metric`.
        message: Reason, for the person who reads it.
        trace: Traceback, for whoever wrote the stage.
    """

    def __init__(self, stage: str, message: str, trace: str = "") -> None:
        super().__init__(stage, message, trace)
        self.stage, self.message, self.trace = stage, message, trace

    @classmethod
    def of(cls, stage: str, error: BaseException) -> ExampleError:
        """Returns what an error in a stage comes to; keys that it tells are left out."""
        if isinstance(error, ReadError):
            return cls(stage, str(error), error.trace)
        return cls(stage, told(error), trace_of(error))


def read_error(error: BaseException) -> ReadError:
    """Returns what an error in a reader comes to; keys that it tells are left out."""
    return ReadError(told(error), trace_of(error))


def told(error: BaseException) -> str:
    """Returns an error in words, none of them a key, however broken it is."""
    try:
        text = str(error)
    except BaseException as within:  # a stage's own error may be as broken as the stage
        if is_passed_on(within):
            raise
        text = f"(its text cannot be had: {type(within).__name__})"
    return in_utf8(redact(f"{type(error).__name__}: {text}")[:_LONGEST])


class stage_errors:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Turns what a stage raises into `ExampleError`; the user's mistakes stop the run instead."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error and not is_passed_on(error):  # a plug-in that leaves the process fails too
            stage = "reader" if isinstance(error, ReadError) else self._stage
            raise ExampleError.of(stage, error) from error


def is_passed_on(error: BaseException) -> bool:
    """Says whether an error is no fault of the stage's: the user's mistake, or wish to stop."""
    return signals.is_interrupt(error) or isinstance(
        error, (UserError, ExampleError, GeneratorExit, Stopped)
    )


def trace_of(error: BaseException) -> str:
    """Returns an error's traceback: Leporello's own files from their package on, others in full."""
    trace = "".join(traceback.format_exception(error))
    folder = Path(__file__).parents[1]
    trace = trace.replace(f'File "{folder}/', f'File "{folder.name}/')
    for original, copy in REMAPPED_PATHS.items():
        trace = trace.replace(f'File "{copy}"', f'File "{original}"')
    return in_utf8(redact(trace)[-10 * _LONGEST :])


@dataclass
class Attempts:
    """Records what one pipeline begins at a shard; without a file, nothing is recorded.

    Attributes:
        pipeline: Place of the pipeline in its batch.
        deaths: Deaths that count, by what was begun last.
        record: Function that writes down what is begun.
        cause: Reason that something which fails for it is given.
    """

    pipeline: int = 0
    deaths: Counter[Phase] = field(default_factory=Counter)
    record: Callable[[Phase], None] | None = None
    cause: str = "its worker died over it each time"
    _last: tuple[str, tuple[int, ...]] | None = None

    def begin(self, kind: str, *numbers: int) -> int:
        """Writes down that something is begun, and returns how many deaths it has caused.

        Args:
            kind: `open`, `select`, `enrich`, `combine`, `metric`, `window`, `read` or `load`.
            numbers: Numbers that name it within the task.
        """
        phase: Phase = (kind, self.pipeline, *numbers)
        self._last = kind, numbers
        if self.record is not None:
            self.record(phase)
        return self.deaths[phase] if self.deaths else 0

    @contextmanager
    def loading(self) -> Generator[None]:
        """Writes down that a model is loaded on the way, and then what goes on.

        Raises:
            UserError: That has killed its worker each time: no read is to blame.
        """
        last = self._last
        if self.begin("load") >= TRIES:
            raise UserError(
                f"workers have died {TRIES} times while they loaded the model: is there memory for"
                " it? Their words stand above"
            )
        yield
        if last is not None:
            self.begin(last[0], *last[1])


def enforce_deadlines(file: Path) -> None:
    """Has calls that outlast their limit for long end this process, whatever they are at.

    Code that never comes back to the interpreter takes no interruption. Faulthandler's own thread
    needs none: it writes down what the process was at, and ends it. One that is stopped, or that
    has called this off, is ended from outside: see `limits.is_overdue`.

    Args:
        file: Path of what is written then; empty until a deadline is enforced. Its time is the
            deadline, by the clock of `monotonic`; the time of day, which lies beyond, is none.
    """
    global _deadline  # noqa: PLW0603 -- one process has one alarm
    if _deadline is not None:
        _deadline.close()
    file.parent.mkdir(parents=True, exist_ok=True)
    _deadline = file.open("w")


class time_limit:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Raises TimeoutError in the block once it has taken longer than its limit.

    Code that stays outside the interpreter is interrupted when it returns. Limits do not nest.
    """

    def __init__(self, seconds: float | None) -> None:
        """Sets no limit yet.

        Args:
            seconds: Seconds that the block may take; None sets no limit.
        """
        self._limit = None if seconds is None else _limited(seconds)
        self._process = os.getpid()

    def __enter__(self) -> None:
        """Starts the limit.

        Raises:
            UserError: In another thread than the main one, where Python takes no signals.
        """
        if self._limit is not None:
            self._limit.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._limit is not None:
                self._limit.__exit__(kind, error, trace)
        finally:
            if os.getpid() != self._process:  # a stage has forked: the copy is not a second worker
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
