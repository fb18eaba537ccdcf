"""Declarations of a class about its results: `depends_on` and `repeatable`.

depends_on = ("words.txt", "env:LANGUAGE")    # files count from the class's source file
repeatable = False                            # a server or a clock: nothing is cached
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from leporello.core.errors import UserError, likely

_VARIABLE = "env:"
_PREFIX = re.compile(r"[A-Za-z]\w+:")  # a letter alone is a drive of Windows
_EXAMPLE = 'such as ("words.txt", "env:LANGUAGE"), and () where there are none'


def is_repeatable(cls: type) -> bool:
    """Returns whether the same input gives the same result, so that it may be cached."""
    return bool(getattr(cls, "repeatable", True))


def has_declared(cls: type) -> bool:
    """Returns whether a class or one of its bases declares `depends_on`."""
    return hasattr(cls, "depends_on")


def declared_variables(cls: type) -> list[str]:
    """Returns the names of the environment variables in `depends_on`.

    Raises:
        UserError: A declaration is malformed.
    """
    entries = (entry for _, entry in _entries(cls))
    return [e.removeprefix(_VARIABLE) for e in entries if e.startswith(_VARIABLE)]


def declared_files(cls: type) -> list[tuple[str, Path]]:
    """Returns the files and folders in `depends_on`: as they are written, and where they are.

    Raises:
        UserError: A declaration is malformed, or a file is missing.
    """
    return [
        (entry, _file(base, entry))
        for base, entry in _entries(cls)
        if not entry.startswith(_VARIABLE)
    ]


def fault_of_declarations(cls: type) -> str | None:
    """Returns what is wrong with `depends_on` or `repeatable` of a class, or None."""
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    for name, annotation in (("depends_on", "tuple[str, ...]"), ("repeatable", "bool")):
        if name in fields:
            return (
                f"{cls.__name__}.{name} is a parameter: annotate it as ClassVar[{annotation}],"
                " or not at all"
            )
    if not isinstance(value := getattr(cls, "repeatable", True), bool):
        return f"{cls.__name__}.repeatable is {value!r}; it must be True or False"
    try:
        declared_files(cls)
    except UserError as error:
        return str(error)
    return None


def _entries(cls: type) -> Iterator[tuple[type, str]]:
    """Yields what a class and its bases declare, each with the class that declares it."""
    for base in cls.__mro__:
        entries = vars(base).get("depends_on", ())
        if not isinstance(entries, tuple) or not all(isinstance(e, str) and e for e in entries):
            comma = "; a tuple of one ends with a comma" if isinstance(entries, str) else ""
            raise UserError(
                f"{base.__name__}.depends_on is {entries!r}; it must be a tuple of files and"
                f" variables, {_EXAMPLE}{comma}"
            )
        for entry in entries:
            _check(base, entry)
            yield base, entry


def _check(base: type, entry: str) -> None:
    """Refuses an entry that is neither a path nor the name of a variable."""
    name = entry.removeprefix(_VARIABLE)
    if name != entry and (not name.strip() or set(name) & {"=", "\0"}):
        raise UserError(
            f"{base.__name__}.depends_on has {entry!r}, which names no environment variable: write"
            " env:NAME"
        )
    if name == entry and (prefix := _PREFIX.match(entry)):
        raise UserError(
            f"{base.__name__}.depends_on has {entry!r}: the prefix {prefix[0]!r} is unknown; write"
            f" env:NAME for a variable, a path for a file (./{entry} for a name with a colon)"
        )


def _file(base: type, entry: str) -> Path:
    source = getattr(sys.modules.get(base.__module__), "__file__", None)
    folder = Path(source).resolve().parent if source else None
    if folder is None and not Path(entry).is_absolute():
        raise UserError(
            f"{base.__name__}.depends_on has {entry!r}, which counts from the class's source file,"
            " and it has none: write an absolute path"
        )
    path = (folder or Path()) / entry
    if not _is_there(path):
        beside = [file.name for file in path.parent.glob("*")] if _is_there(path.parent) else []
        raise UserError(
            f"{base.__name__}.depends_on has {entry!r}, and {path} does not exist"
            f"{likely(path.name, beside)}"
        )
    return path


def _is_there(path: Path) -> bool:
    """Returns whether a path is a file or a folder; a pipe has no content to compare."""
    try:
        return path.is_file() or path.is_dir()
    except (OSError, ValueError):  # a name that is too long, or has a NUL
        return False
