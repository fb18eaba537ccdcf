"""Opens files of users, finds the cache, and reads and atomically writes the files of a run."""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EEXIST
from functools import lru_cache, partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO, TypeAlias, TypeVar, cast

from leporello.core.environment.input_limits import LINE_LETTERS, loads
from leporello.core.errors import UserError
from leporello.core.records import JSON

_ENDS = 65_536  # bytes at both ends of a file that are searched for a mark
_HALF = re.compile("[\ud800-\udfff]")  # unpaired surrogates only, since JSON joins pairs
_Json = TypeVar("_Json")
Stamp: TypeAlias = tuple[int, int, int, int]


def at_home(path: str | Path) -> Path:
    """Returns the path with `~` expanded; unlike `expanduser`, unchanged for an unknown user."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 -- see the docstring


def cache_directory() -> Path:
    """Returns the folder of Leporello's cache: `LEPORELLO_CACHE`, or the user's cache folder."""
    if folder := os.environ.get("LEPORELLO_CACHE"):
        return at_home(folder).absolute()
    from platformdirs import user_cache_path

    try:
        return user_cache_path("leporello")
    except RuntimeError:
        raise UserError(
            "the home directory of this user is unknown: set HOME, or set LEPORELLO_CACHE to a"
            " folder for the cache"
        ) from None


def opened(path: Path) -> BufferedReader:
    """Returns a file, open for reading; rejects pipes and devices, since they may never end."""
    try:
        local = Path(os.fspath(path))  # downloads the file if the path is a URL
        mode = local.stat().st_mode  # checked first because opening a pipe would block
        if stat.S_ISDIR(mode):
            raise UserError(f"{path}: is a folder; name one file")
        if not stat.S_ISREG(mode):
            raise UserError(f"{path}: is a pipe or a device; save its output to a file first")
        if local.resolve().is_relative_to("/proc"):  # its files may wait or never end
            raise UserError(f"{path}: is not stored on a disk; copy it to a file first")
        return local.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # the name contains a NUL
        raise UserError(f"{str(path)!r}: is not a valid path: {error}") from None


def stamp(path: Path) -> Stamp:
    """Returns inode, size and times of a file, which change when the file is written or replaced.

    Any program can set the modification time, but none the time of the last change, which other
    operations such as `chmod` change too. So files with other stamps are read again, and only their
    contents decide whether they have changed.
    """
    with opened(path) as file:
        status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file, which is read again only if it has changed."""
    return _sha256(path, stamp(path))


@lru_cache(maxsize=4096)
def _sha256(path: Path, stamp: Stamp) -> str:  # noqa: ARG001 -- part of the key
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def atomically(path: Path) -> Iterator[TextIO]:
    """Opens a temporary file and renames it to `path` at the end, so that no half file remains.

    Unpaired surrogates, which UTF-8 cannot encode, are escaped as in JSON.
    """
    # Hidden and beside the target: listings skip it, and a rename stays within the file system.
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # otherwise a power cut could leave an incomplete file
        # A rename within a folder is atomic: another process sees the old file or the new one.
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, busy: str) -> Iterator[None]:
    """Holds the lock of a file during the block; raises UserError(busy) if others hold it."""
    from filelock import FileLock, Timeout

    try:
        # Without waiting, because a second run of the same command is nearly always a mistake.
        with FileLock(path, timeout=0):
            yield
    except Timeout:
        raise UserError(busy) from None


def check_own(path: Path, mark: str) -> None:
    """Raises UserError if a file exists without `mark` at its beginning or end: another file."""
    if not path.is_file() or not (size := path.stat().st_size):
        return
    with opened(path) as file:
        ends = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        ends += file.read()
    if mark.encode() not in ends:
        raise UserError(f"{path} exists and is another file: move it, or write to another path")


def write_json(path: Path, value: JSON, indent: int | None = 2) -> None:
    """Writes a JSON file atomically; without indent it is one line."""
    with atomically(path) as file:
        file.write(json.dumps(value, indent=indent, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 -- any JSON
    """Reads a JSON file."""
    with opened(path) as file:
        content = file.read(LINE_LETTERS + 1)
    if len(content) > LINE_LETTERS:
        raise UserError(f"{path}: is larger than {LINE_LETTERS // 2**20} MiB: not a file of a run")
    try:
        return loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON: {error}") from None


def read_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yields the rows of a JSON Lines file that a run wrote."""
    try:
        with TextIOWrapper(opened(path), encoding="utf-8", errors="surrogatepass") as file:
            lines = iter(partial(file.readline, LINE_LETTERS), "")
            for number, line in enumerate(lines, 1):
                try:
                    yield loads(line)
                except (ValueError, RecursionError) as error:
                    raise UserError(f"{path}:{number}: not JSON: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None


def append_rows(path: Path, *rows: Mapping[str, Any]) -> None:
    """Appends rows to a JSON Lines file at once, so that lines of several processes never mix."""
    if path.exists() and not path.is_file():  # opening a pipe would block
        raise FileExistsError(EEXIST, "it is not a file")
    with path.open("ab", buffering=0) as file:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        file.write("".join(lines).encode(errors="backslashreplace"))


def appended_rows(path: Path) -> Iterator[Any]:
    """Yields the rows that `append_rows` wrote, without a line that a kill cut short."""
    with suppress(UserError), opened(path) as file:
        for line in file:
            with suppress(ValueError):
                yield json.loads(line)


def in_utf8(value: _Json) -> _Json:
    """Returns JSON with U+FFFD for unpaired surrogates, which UTF-8 and tokenizers reject."""
    result: Any = value
    if isinstance(value, str):
        try:
            value.encode()  # four times as fast as a search with a regular expression
        except UnicodeEncodeError:
            result = _HALF.sub("\N{REPLACEMENT CHARACTER}", value)
    elif isinstance(value, (list, tuple)):
        result = [*map(in_utf8, value)]
    elif isinstance(value, dict):
        result = {in_utf8(key): in_utf8(item) for key, item in value.items()}
    return cast("_Json", result)
