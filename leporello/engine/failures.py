"""Failures of stages: errors, calls that take too long, and deaths of workers."""

from __future__ import annotations

# Functions by name, where a stage that replaces them must not affect the limits.
import os
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from faulthandler import cancel_dump_traceback_later, dump_traceback_later
from os import _exit
from pathlib import Path
from time import monotonic
from types import FrameType, TracebackType
from typing import TypeAlias, TypeVar

from leporello.core.calls.contracts import WrongCountError
from leporello.core.environment import process
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.core.environment.input_limits import SECONDS
from leporello.core.environment.platform import alarm
from leporello.core.environment.user_code import text_of
from leporello.core.errors import ReadError, UserError, is_out_of_memory
from leporello.core.files import in_utf8
from leporello.core.secrets import redact

Item = TypeVar("Item")
Result = TypeVar("Result")

# An error of a plug-in may contain a complete document.
_LONGEST = 5_000  # characters of an error; a traceback may have ten times as many
CURED = "failed in a batch, but not alone"  # counts as a fault, unlike a lack of memory
# Memory may be short by chance, and a node may be lost; three times is the operation's fault.
TRIES = 3  # deaths after which the items of an operation run one at a time, or a single item fails

# Operation that was started: its kind, the index of its pipeline, and numbers that identify it.
Phase: TypeAlias = tuple[str | int, ...]

# An alarm interrupts Python code. If the call never returns to the interpreter, faulthandler ends
# the process; if a stage cancelled both, or the process is stopped, its parent kills it. Each waits
# for the one before it (decision 40).
_GRACE = 2.0  # seconds beyond twice the limit after which the process ends itself
_IMPORTS = 60.0  # seconds for which imports in a call put off both
OUTSIDE = 1.0  # further seconds after which the parent kills it
_SILENCE = 5.0  # seconds beyond twice the limit without an operation, after which a process is late
# Message of the failure of an item that exceeded its time limit by far.
OVERDUE = "exceeded its time limit by far, and could not be interrupted"
# Operations without a limit: files and models may be huge, and connections slow.
_UNLIMITED = ("open", "load", "publish")
# Libraries that retry on any exception swallow the first one.
_AGAIN = 1.0  # seconds after which a call that swallowed the TimeoutError is interrupted again

# The time of `monotonic` at which this process is late, and 0 if it never is; see `be_watched`.
_late_at: memoryview[float] | list[float] | None = None
_silence = 0.0  # seconds that may pass between two operations


class ExampleError(Exception):
    """Failure of an example. It contains only texts, so it can be sent between processes.

    The stage that failed is a key of a pipeline, `task` or `metric`.
    """

    def __init__(self, stage: str, message: str, trace: str = "") -> None:
        super().__init__(stage, message, trace)
        self.stage, self.message, self.trace = stage, message, trace

    @classmethod
    def of(cls, stage: str, error: BaseException) -> ExampleError:
        """Returns the failure for an error of a stage; API keys in its text are redacted."""
        if isinstance(error, ReadError):
            return cls(stage, str(error), error.trace)
        return cls(stage, error_text(error), trace_of(error))


def error_text(error: BaseException) -> str:
    """Returns the type and text of an error, with API keys redacted; never raises."""
    return in_utf8(redact(f"{type(error).__name__}: {text_of(error)}")[:_LONGEST])


class stage_errors:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Turns errors of a stage into `ExampleError`, but not mistakes of the user and interrupts."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error and not is_passed_on(error):  # includes SystemExit: a plug-in may call `sys.exit`
            stage = "reader" if isinstance(error, ReadError) else self._stage
            raise ExampleError.of(stage, error) from error


def is_passed_on(error: BaseException) -> bool:
    """Returns whether an error is not a failure of a stage, but a user's mistake or interrupt."""
    return process.is_interrupt(error) or isinstance(
        error, (UserError, ExampleError, GeneratorExit)
    )


def trace_of(error: BaseException) -> str:
    """Returns an error's traceback, with paths of Leporello's files relative to the package."""
    trace = "".join(traceback.format_exception(error))
    folder = Path(__file__).parents[1]
    # Equal on all machines, so that the same failure has the same file.
    trace = trace.replace(f'File "{folder}/', f'File "{folder.name}/')
    for original, copy in REMAPPED_PATHS.items():
        trace = trace.replace(f'File "{copy}"', f'File "{original}"')
    # The end of a traceback names the fault; deep recursion fills its beginning.
    return in_utf8(redact(trace)[-10 * _LONGEST :])


@dataclass
class Attempts:
    """Log of the operations that a pipeline starts on a shard, and counts of their deaths."""

    pipeline: int = 0  # index of the pipeline among those that run together
    # Number of deaths that count, by the operation that was started last.
    deaths: Counter[Phase] = field(default_factory=Counter)
    # Function that logs a started operation; None logs nothing.
    record: Callable[[Phase], None] | None = None
    # Message of the failure of an item that killed its workers.
    cause: str = "its worker died each time"
    _last: tuple[str, tuple[int, ...]] | None = None

    def begin(self, kind: str, *numbers: int) -> int:
        """Logs the start of an operation, and returns the number of deaths that it has caused.

        The kind is `open`, `select`, `read`, `load` or `publish`, or the key of a stage; the
        numbers identify the operation within the task.
        """
        phase: Phase = (kind, self.pipeline, *numbers)
        self._last = kind, numbers
        if self.record is not None:
            self.record(phase)
            set_late(None if kind in _UNLIMITED else _silence)
        return self.deaths[phase] if self.deaths else 0

    def start(self, stage: str, number: int) -> None:
        """Logs the start of a stage; raises ExampleError if that has killed its workers."""
        if self.begin(stage, number) >= TRIES:
            raise ExampleError(stage, self.cause)

    def parts(
        self, kind: str, items: Sequence[Item], numbers: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[Sequence[Item], bool]]:
        """Yields all items, or each one after too many deaths, and whether it has killed workers.

        `numbers` identify the items.
        """
        # Not after the first death: smaller batches can change the answers of float readers, so
        # every lost worker would change results (decision 49).
        if self.begin(kind, *numbers[0], len(items)) < TRIES:
            yield items, False
            return
        for item, single in zip(items, numbers, strict=True):
            # All items were tried three times, so one death alone is proof enough.
            yield [item], self.begin(kind, *single) > 0 or len(items) == 1

    @contextmanager
    def loading(self) -> Generator[None]:
        """Logs that a model is loaded, and then that the interrupted operation continues.

        Raises UserError if loading has killed its worker each time: no single read is the cause.
        """
        last = self._last
        if self.begin("load") >= TRIES:
            raise UserError(
                f"workers have died {TRIES} times while they loaded the model; check that there is"
                " enough memory, and see their output above"
            )
        yield
        if last is not None:
            self.begin(last[0], *last[1])


def be_watched(late_at: memoryview[float] | list[float], timeout: float) -> None:
    """Makes calls that exceed twice the limit by far end this process.

    Code that never returns to the interpreter cannot be interrupted. Therefore faulthandler's
    thread writes a traceback and ends the process. If a stage defeats that, the parent ends the
    process: `late_at` holds one number that it reads, the time of `monotonic` at which the process
    is late, or 0.
    """
    global _late_at, _silence
    _late_at, _silence = late_at, 2 * timeout + _SILENCE


def set_late(seconds: float | None) -> None:
    """Sets the number of seconds after which this process is late; None if it never is."""
    if _late_at is not None:
        _late_at[0] = monotonic() + seconds if seconds else 0.0


class time_limit:  # noqa: N801 -- called like a function; a generator takes twice as long
    """Raises TimeoutError in the block once its time is over; limits do not nest."""

    def __init__(self, seconds: float | None) -> None:
        self._limit = nullcontext() if seconds is None else _limited(seconds)
        self._process = os.getpid()

    def __enter__(self) -> None:
        """Starts the limit; raises UserError outside the main thread, which alone gets signals."""
        self._limit.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._limit.__exit__(kind, error, trace)
        finally:
            if os.getpid() != self._process:  # a stage has forked: the copy is not a worker
                _exit(0)


@contextmanager
def _limited(seconds: float) -> Generator[None]:
    # Python runs signal handlers only in the main thread, so nothing would interrupt this one.
    if threading.current_thread() is not threading.main_thread():
        raise UserError("a time-out for examples requires the main thread; run without one here")

    over, started = False, monotonic()

    def ring(_: int, frame: FrameType | None) -> None:
        if over:
            return
        if not _is_importing(frame):
            raise TimeoutError(f"took longer than {seconds:g} s")
        # An interrupted import leaves a broken module; the next alarm follows soon.
        if monotonic() - started < _IMPORTS:
            arm()

    def arm() -> None:
        if _late_at is not None:
            # Twice the limit: the exception of the alarm comes first, and costs only one example,
            # whereas this ends the worker and its model.
            delay = min(2 * seconds + _GRACE, SECONDS)
            # In shared memory, which the parent can read even if this process is stopped. First, so
            # that the parent knows why the process has ended (decision 40).
            set_late(delay)
            dump_traceback_later(delay, exit=True)

    with alarm(seconds, _AGAIN, ring):
        arm()
        try:
            yield
        finally:
            over = True  # a late alarm is ignored
            cancel_dump_traceback_later()
            set_late(_silence)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def isolated(
    call: Callable[[Sequence[Item]], Sequence[Result]],
    items: Sequence[Item],
    stage: str,
    timeout: float | None,
) -> list[tuple[Result | ExampleError, str]]:
    """Returns the result or error of each item, and a note on items that fail only together.

    A call that fails is repeated with halves of its items. `timeout` is in seconds per item.
    """
    try:
        # Items take about as long together as one after the other, so each item's time counts.
        with stage_errors(stage), time_limit(timeout and timeout * len(items)):
            return [(result, "") for result in call(items)]
    except ExampleError as error:
        failure = error
    # After a wrong number of results, a bug of the class, smaller batches fail, too.
    if len(items) == 1 or isinstance(failure.__cause__, WrongCountError):
        return [(failure, "")] * len(items)
    # Halving isolates one faulty read of 32 in 11 calls; single reads would take 33.
    half = len(items) // 2
    results = isolated(call, items[:half], stage, timeout)
    results += isolated(call, items[half:], stage, timeout)
    if any(isinstance(result, ExampleError) for result, _ in results):
        return results
    # Not rescued silently: such a fault depends on the batch, so the run ends with status 1, unless
    # only memory was missing (decision 40).
    is_memory = is_out_of_memory(failure.__cause__)
    fact = "was processed in smaller batches, since memory ran out" if is_memory else CURED
    note = f"{fact} ({failure.stage}: {failure.message.partition(chr(10))[0]})"
    return [(result, note) for result, _ in results]
