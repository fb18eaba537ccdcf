"""Signals and standard streams of this process, from a command's first import to its exit.

The first signal stops the command in an orderly way; a second one ends the process at once. No data
is lost: files are written atomically, and child processes end with their parent.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_COMMANDS = ("leporello", "run_pipeline.py", "-m")  # `-m` until Python has found the module
_OUTPUT = 1  # file descriptor
_ESCAPE = "backslashreplace"  # documents may contain characters that a stream cannot encode
_exit = os._exit  # the original: a command replaces `os._exit` because stages may call it

_first = 0  # number of the first signal
_is_command = False  # False in scripts and notebooks that import Leporello


def raise_interrupted() -> None:
    """Installs handlers: the first signal raises `Interrupted`, a second one ends the process."""
    global _is_command  # noqa: PLW0603 -- signals are the process's
    _is_command = True
    handle(_raise)


def keep_status(status: int) -> None:
    """Makes signals end the process at once with the given exit status."""
    handle(lambda *_: _exit(status))


def remember(number: int) -> None:
    """Stores the first signal, which determines the exit status."""
    global _first  # noqa: PLW0603 -- signals are the process's
    _first = _first or number


def is_interrupt(error: BaseException) -> bool:
    """Returns whether the user caused an error by an interrupt, rather than a plug-in by itself."""
    from leporello.core.errors import Interrupted

    if isinstance(error, Interrupted):
        return bool(_first)
    # Our handlers raise `Interrupted`. Where they are installed, a plain KeyboardInterrupt is the
    # fault of the stage that raised it (decision 40).
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, KeyboardInterrupt) and default


def status() -> int:
    """Returns the exit status of an interrupted command, as shells define it."""
    return 128 + (_first or signal.SIGINT)


def leave() -> NoReturn:
    """Ends a command at once; raises `Interrupted` in scripts and notebooks."""
    if _is_command:
        cursor = b"\x1b[?25h" if os.isatty(2) else b""  # shows the cursor that progress bars hide
        os.write(2, cursor + b"\ninterrupted\n")
        _exit(status())
    from leporello.core.errors import Interrupted

    raise Interrupted


def _raise(number: int, _: FrameType | None) -> None:
    from leporello.core.errors import Interrupted

    if _first:
        leave()
    remember(number)
    raise Interrupted


def handle(handler: object) -> None:
    """Installs a handler for all three signals, except for SIGHUP under nohup."""
    for number in SIGNALS:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


if os.path.basename(getattr(sys, "argv", [""])[0]) in _COMMANDS:  # noqa: PTH119 -- pathlib is slow
    # During imports there is nothing to clean up, so a signal may end the process at once.
    handle(lambda number, _: _exit(128 + number))
    # Signals are ignored while the interpreter exits; it runs last because it is registered first.
    atexit.register(handle, signal.SIG_IGN)


class _Stream(FileIO):
    """Standard output or error; stores its first error, and discards everything after it."""

    error: OSError | None = None

    def write(self, data: ReadableBuffer) -> int | None:  # type: ignore[override]
        """Writes bytes; raises only where nobody reads standard output any more."""
        if self.error is None:
            try:
                return super().write(data)
            except OSError as error:
                self.error = error
                # The command may end early: nobody needs the rest.
                if isinstance(error, BrokenPipeError) and self.fileno() == _OUTPUT:
                    raise
        return memoryview(data).nbytes


def open_standard_streams() -> None:
    """Opens missing standard streams on the null device, and makes the others safe to write to.

    A missing stream's descriptor would otherwise belong to the next file that is opened, and
    messages would be written into that file.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
            os.set_inheritable(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    for number, name in ((_OUTPUT, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        if stream is None or (stream is getattr(sys, f"__{name}__") and not stream.isatty()):
            setattr(sys, name, _safe(number, getattr(stream, "encoding", "utf-8")))
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ESCAPE)


def output_error() -> str:
    """Returns why standard output is incomplete; empty if it is complete or nobody reads it."""
    error = getattr(getattr(getattr(sys.stdout, "buffer", None), "raw", None), "error", None)
    if error is None or isinstance(error, BrokenPipeError):
        return ""
    return f"standard output is incomplete: {error.strerror}"


def _safe(number: int, encoding: str) -> TextIOWrapper:
    raw = _Stream(number, "w", closefd=False)
    is_line_buffered = number != _OUTPUT
    return TextIOWrapper(BufferedWriter(raw), encoding, _ESCAPE, line_buffering=is_line_buffered)
