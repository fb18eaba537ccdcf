"""Files: the user's, opened for reading, and those of a run, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

from leporello.core.errors import UserError
from leporello.core.records import JSON

_HALF = re.compile("[\ud800-\udfff]")  # JSON joins those that have their other half
_Json = TypeVar("_Json")


def at_home(path: str | Path) -> Path:
    """Returns the path with `~` replaced; that of an unknown user stays as it is.

    `Path.expanduser` raises for such a user.
    """
    return Path(os.path.expanduser(path))  # noqa: PTH111 -- as above


def opened(path: Path) -> BufferedReader:
    """Returns a file, open for reading; pipes and devices, which need not end, are refused.

    Raises:
        UserError: There is no such file, or it is none that can be read.
    """
    try:
        local = Path(os.fspath(path))  # fetched here, if it is at a URL
        mode = local.stat().st_mode  # before it is opened: that would wait for a pipe's other end
        if stat.S_ISDIR(mode):
            raise UserError(f"{path}: is a folder; name one file")
        if not stat.S_ISREG(mode):
            raise UserError(f"{path}: is no file but a pipe or a device; save what it gives first")
        return local.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in its name
        raise UserError(f"{str(path)!r}: is no path: {error}") from None


def stamp(path: Path) -> tuple[int, int, int]:
    """Returns inode, size and time of a file, which differ once another file has its path.

    Raises:
        UserError: As `opened`.
    """
    with opened(path) as file:
        status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, computed in the memory of a block.

    Raises:
        UserError: As `opened`.
    """
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomically(path: Path) -> Iterator[TextIO]:
    """Opens a file beside its place and renames it there, so that it is whole or as it was.

    Halves of surrogate pairs, which no UTF-8 file can hold, are escaped as JSON does it.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a power cut after the renaming leaves it whole
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: JSON, indent: int | None = 2) -> None:
    """Writes a JSON file atomically, for people to read unless it has no indent."""
    with atomically(path) as file:
        file.write(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 -- any JSON
    """Reads a JSON file.

    Raises:
        UserError: It is missing or no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a JSON Lines file that a run wrote.

    Raises:
        UserError: The file is missing or a line is no JSON.
    """
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except (ValueError, RecursionError) as error:
                    raise UserError(f"{path}:{number}: not JSON: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None


def in_utf8(value: _Json) -> _Json:
    """Returns JSON with U+FFFD for halves of surrogate pairs, which are no characters.

    No UTF-8 file can hold them, and tokenizers refuse them.
    """
    made: Any = value
    if isinstance(value, str):
        try:
            value.encode()  # four times as fast as a search
        except UnicodeEncodeError:
            made = _HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    elif isinstance(value, (list, tuple)):
        made = [*map(in_utf8, value)]
    elif isinstance(value, dict):
        made = {in_utf8(key): in_utf8(item) for key, item in value.items()}
    return cast("_Json", made)
