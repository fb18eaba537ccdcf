"""Where in the user's own code an error lies: its file, its line, and the lines around it."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from leporello.core.environment import signals
from leporello.core.errors import UserError
from leporello.core.secrets import redact

_AROUND = 3  # lines before and behind
_LONGEST = 120  # letters of a line
_PACKAGE = Path(__file__).parents[2]
_STAGES = ("chunkers", "enrichers", "retrievers", "readers", "combiners")  # beside it in a checkout
_OURS = (_PACKAGE, *(_PACKAGE.parent / name for name in _STAGES))
_STDLIB = Path(sysconfig.get_path("stdlib"))
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


def told_with_lines(error: BaseException) -> str:
    """Returns an error, and the user's line that met it with six lines of context, if one did."""
    text = f"{type(error).__name__}: {_text_of(error)}"
    place = next(_own_places(error), None)
    if place is None:
        return text
    file, line = place
    return "\n".join([f"{text} ({file}, line {line})", *_excerpt(file, line)])


@contextmanager
def own_errors(who: str, *passed: type[Exception]) -> Generator[None]:
    """Turns whatever a class of the user's own raises into a `UserError` with its line.

    Args:
        who: The words with which the message begins.
        passed: Exceptions that are passed on as they are.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, (UserError, *passed)) or signals.is_interrupt(error):
            raise
        raise UserError(redact(f"{who} failed: {told_with_lines(error)}")) from None


def _text_of(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg
    try:
        return str(error)
    except BaseException as within:  # an error may be as broken as the class that raised it
        if signals.is_interrupt(within):
            raise
        return f"(its text cannot be had: {type(within).__name__})"


def _own_places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yields file and line of the user's own code, the innermost first."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield error.filename, error.lineno
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if _is_code(frame.filename)
    ]
    own = [frame for frame in frames if not _is_installed(frame.filename)]
    # Of an installed plug-in the outermost: within are the libraries that it calls.
    for frame in [*reversed(own), *frames]:
        yield frame.filename, frame.lineno or 0


def _is_code(file: str) -> bool:
    """Says whether a file is neither Python's nor Leporello's."""
    path = Path(file)
    ours = any(path.is_relative_to(folder) for folder in _OURS)
    return path.is_file() and not ours and (_is_installed(file) or not path.is_relative_to(_STDLIB))


def _is_installed(file: str) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


def _excerpt(file: str, line: int) -> Iterator[str]:
    linecache.checkcache(file)
    for number in range(max(1, line - _AROUND), line + _AROUND + 1):
        if text := linecache.getline(file, number):
            mark = ">" if number == line else " "
            yield f"  {mark} {number:4} | {text.rstrip()[:_LONGEST]}".rstrip()
