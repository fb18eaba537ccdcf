"""Standard streams whose errors fail no command and no worker."""

from __future__ import annotations

import os
import sys
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_OUTPUT = 1  # file descriptor
_ESCAPE = "backslashreplace"  # documents may contain characters that a stream cannot encode


class _Stream(FileIO):
    """Standard output or error; discards everything after its first error.

    Attributes:
        error: The first error.
    """

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
