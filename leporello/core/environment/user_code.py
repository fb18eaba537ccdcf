"""Locates an error in the user's code: the file, the line, and the lines around it."""

import linecache
import sysconfig
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from leporello.core.environment import process
from leporello.core.errors import UserError
from leporello.core.secrets import redact

_AROUND = 3  # lines before and after
_LONGEST = 120  # letters of a line
_PACKAGE = Path(__file__).parents[2]
# In a checkout, the folders of stages are next to the package.
_STAGES = ("chunkers", "enrichers", "retrievers", "readers", "combiners")
_LEPORELLO = (_PACKAGE, *(_PACKAGE.parent / name for name in _STAGES))
_STDLIB = Path(sysconfig.get_path("stdlib"))
_INSTALLED = tuple(Path(sysconfig.get_path(name)) for name in ("purelib", "platlib"))


def describe_error(error: BaseException) -> str:
    """Returns an error as text, with the line of the user's code and six lines of context."""
    inner = error.msg if isinstance(error, SyntaxError) else text_of(error)
    text = f"{type(error).__name__}: {inner}"
    place = next(_user_places(error), None)
    if place is None:
        return text
    file, line = place
    return "\n".join([f"{text} ({file}, line {line})", *_excerpt(file, line)])


@contextmanager
def user_code_errors(source: str, *passed: type[BaseException]) -> Generator[None]:
    """Converts errors of a user's class to a `UserError` with the line of the user's code."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, (UserError, *passed)) or process.is_interrupt(error):
            raise
        raise UserError(redact(f"{source} failed: {describe_error(error)}")) from None


def text_of(error: BaseException) -> str:
    """Returns the text of an error, whose class may be a faulty one of the user."""
    try:
        return str(error)
    except BaseException as inner:
        if process.is_interrupt(inner):
            raise
        return f"(its text is not available: {type(inner).__name__})"


def _user_places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yields files and lines of the user's code, the innermost first."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        yield error.filename, error.lineno
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if _is_code(frame.filename)
    ]
    user_frames = [frame for frame in frames if not _is_installed(frame.filename)]
    # In installed packages the outermost frame is the plug-in; inner frames are its libraries.
    for frame in [*reversed(user_frames), *frames]:
        yield frame.filename, frame.lineno or 0


def _is_code(file: str) -> bool:
    """Returns whether a file belongs neither to Python nor to Leporello."""
    path = Path(file)
    if not path.is_file() or any(path.is_relative_to(folder) for folder in _LEPORELLO):
        return False
    return _is_installed(file) or not path.is_relative_to(_STDLIB)


def _is_installed(file: str) -> bool:
    return any(Path(file).is_relative_to(folder) for folder in _INSTALLED)


def _excerpt(file: str, line: int) -> Iterator[str]:
    linecache.checkcache(file)
    for number in range(max(1, line - _AROUND), line + _AROUND + 1):
        if text := linecache.getline(file, number):
            mark = ">" if number == line else " "
            yield f"  {mark} {number:4} | {text.rstrip()[:_LONGEST]}".rstrip()
