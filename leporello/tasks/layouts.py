"""Layouts, which list the documents of a task so that shards can be made without reading texts.

LEPORELLO_CACHE/layouts/KEY.jsonl has one line per document, and a last line with the number of
examples and a checksum. The lines may follow the documents' texts.
"""

import hashlib
import json
import mmap
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pydantic_core import from_json, to_json

from leporello.core.errors import UserError
from leporello.core.files import cache_directory, opened
from leporello.core.records import JSON, DocumentRows, Example


class Layout:
    """The documents of a task in order; the open file may be removed."""

    def __init__(self, content: mmap.mmap) -> None:
        """Reads a file's bytes; raises ValueError if they are damaged."""
        self._content = content
        self._end = content.rfind(b"\n", 0, len(content) - 1) + 1
        last = json.loads(content[self._end :])
        self._start = self._end - last["bytes"]
        with memoryview(content) as view:
            checksum = zlib.crc32(view[self._start : self._end])
        if last["crc32"] != checksum:
            raise ValueError("is damaged")
        self.examples: int = last["examples"]

    def __iter__(self) -> Iterator[DocumentRows]:
        start = self._start
        while start < self._end:
            end = self._content.find(b"\n", start)
            yield DocumentRows(*from_json(self._content[start:end]))
            start = end + 1

    def text(self, start: int, size: int) -> str:
        """Returns a text that was stored before the documents."""
        return self._content[start : start + size].decode(errors="replace")


class LaidOut:
    """A task whose documents are read one by one, by its layout."""

    def _layout(self) -> Layout:
        raise NotImplementedError

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        raise NotImplementedError

    def layout(self) -> Iterator[DocumentRows]:
        """Yields the documents, in the order of their first rows."""
        yield from self._layout()

    def examples(self) -> Iterator[Example]:
        """Yields the examples, grouped by document."""
        yield from self.examples_of(self.layout(), 0)

    def __len__(self) -> int:
        return self._layout().examples


def cached_layout(
    key: JSON, documents: Callable[[Callable[[bytes], int]], Iterable[DocumentRows]]
) -> Layout:
    """Returns a layout, from its file if it exists; raises UserError if the disk is full.

    The layout depends on `key` and on this package's code; it is not cached if `key` is None.
    `documents` is called only without a file, with a function that stores a text and returns its
    start; all texts precede the first document. If it raises, no file is written.
    """
    path = _path(key)
    if path and (layout := _read(path)):
        return layout
    examples = size = checksum = 0
    with _new(path) as file:
        for document in documents(partial(_append, file)):
            line = _line([document.examples, document.bytes, document.rows])
            _append(file, line)
            examples += document.examples
            size += len(line)
            checksum = zlib.crc32(line, checksum)
        _append(file, _line({"examples": examples, "bytes": size, "crc32": checksum}))
        return Layout(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _path(key: JSON) -> Path | None:
    if key is None:
        return None
    # Another version of the code may find other documents, and uses another file.
    content = json.dumps([_code(), key]).encode()
    return cache_directory() / f"layouts/{hashlib.sha256(content).hexdigest()}.jsonl"


def _read(path: Path) -> Layout | None:
    """Returns the layout in a file; None if the file is missing or damaged."""
    with suppress(OSError, ValueError, KeyError, TypeError, UserError), opened(path) as file:
        layout = Layout(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        with suppress(OSError):  # the folder may be read-only
            os.utime(path)
        return layout
    return None


@contextmanager
def _new(path: Path | None) -> Iterator[IO[bytes]]:
    """Opens a file that is renamed to the path; a temporary file if that is not possible."""
    with ExitStack() as stack:
        file = partial = None
        with suppress(OSError):  # the folder may be read-only
            if path:
                partial = path.with_suffix(f".{os.getpid()}-{secrets.token_hex(4)}.partial")
                path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(partial.open("xb+"))
                stack.callback(partial.unlink, missing_ok=True)
        yield file or stack.enter_context(TemporaryFile())
        if file and partial and path:
            with suppress(OSError):  # another program has put a folder there
                partial.replace(path)


def _append(file: IO[bytes], line: bytes) -> int:
    """Appends bytes, and returns their start."""
    start = file.tell()
    try:
        file.write(line)
        if line.startswith(b"{"):  # the last line
            file.flush()
    except OSError as error:
        with suppress(OSError):  # closing the file writes again, and fails again
            file.close()
        raise UserError(
            f"the layout of a task cannot be written to {cache_directory()}: {error.strerror};"
            " free disk space, or set LEPORELLO_CACHE to another folder"
        ) from None
    return start


def _line(value: JSON) -> bytes:
    return to_json(value, inf_nan_mode="constants") + b"\n"


@cache
def _code() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.*")):
        if path.suffix in (".py", ".yaml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()
