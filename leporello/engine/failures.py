"""What a stage that fails comes to: the failure of one example, or of one read."""

from __future__ import annotations

import traceback
from pathlib import Path

from leporello.core.environment import signals
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.core.errors import ReadError, Stopped, UserError
from leporello.core.files import in_utf8
from leporello.core.secrets import redact

_LONGEST = 5_000  # characters of an error; ten times as many of a traceback
CURED = "failed with others, and not alone"  # a fault; what lack of memory explains is none


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
