"""SIGINT, SIGTERM and SIGHUP, from a command's first import to its last breath.

The first asks for an end; one more ends the process where it is. That loses nothing: files are
whole at every moment, and the processes that it has started end with it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
_COMMANDS = ("leporello", "run_pipeline.py", "-m")  # `-m` until the module is found
_exit = os._exit  # which a command replaces, for stages that call it

_first = 0  # the number of the signal that came first
_is_command = False  # rather than a script or a notebook that has imported Leporello


def raise_interrupted() -> None:
    """Has the first signal raise `Interrupted` from here on, and one more end at once."""
    global _is_command  # noqa: PLW0603 -- signals are the process's
    _is_command = True
    handle(_raise)


def keep_status(status: int) -> None:
    """Has signals change nothing more about how this process ends; they may hasten it."""
    handle(lambda *_: _exit(status))


def remember(number: int) -> None:
    """Keeps which signal came first: the exit status tells."""
    global _first  # noqa: PLW0603 -- as above
    _first = _first or number


def is_interrupt(error: BaseException) -> bool:
    """Says whether an error is a person's wish to stop, and no class's own KeyboardInterrupt."""
    from leporello.core.errors import Interrupted

    if isinstance(error, Interrupted):
        return bool(_first)
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return isinstance(error, KeyboardInterrupt) and default


def status() -> int:
    """Returns the exit status of a command that was interrupted, as a shell has it."""
    return 128 + (_first or signal.SIGINT)


def leave() -> NoReturn:
    """Ends a command at once; elsewhere, raises `Interrupted`."""
    if _is_command:
        cursor = b"\x1b[?25h" if os.isatty(2) else b""  # which a bar of progress hides
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
    """Has all three handled so, but for SIGHUP under nohup."""
    for number in SIGNALS:
        if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)  # type: ignore[arg-type]


def _ignore() -> None:
    """Has signals come too late: what is left is the interpreter's own end."""
    handle(signal.SIG_IGN)


if os.path.basename(getattr(sys, "argv", [""])[0]) in _COMMANDS:  # noqa: PTH119 -- pathlib is slow
    # While modules are imported nothing has been done, so there is nothing to finish.
    handle(lambda number, _: _exit(128 + number))
    atexit.register(_ignore)  # which comes last, since it was registered first
