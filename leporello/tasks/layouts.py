"""Layouts: where the documents of a task stand in its data, so that shards are cut without a text.

    LEPORELLO_CACHE/layouts/KEY.jsonl

A file has a line a document, and a last one with their number of examples and a checksum. It is
written while a task's data are read for the first time, in the memory of a line.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Generic, TypeVar

from pydantic_core import from_json, to_json

from leporello.core.errors import UserError
from leporello.core.records import JSON, DocumentRows, Example
from leporello.models.locate import cache_directory


class Layout:
    """The documents of a task in their order, from a file; nothing happens if it is removed.

    Attributes:
        examples: Number of examples.
        facts: Values that were noted beside the documents.
    """

    def __init__(self, content: mmap.mmap) -> None:
        """Takes a file's bytes; raises ValueError if they are not what was written."""
        self._content = content
        self._end = content.rfind(b"\n", 0, len(content) - 1) + 1
        last = json.loads(content[self._end :])
        if not isinstance(last, dict) or last.get("crc32") != self._checksum():
            raise ValueError("is damaged")
        self.examples: int = last["examples"]
        self.facts: Mapping[str, Any] = last["facts"]

    def __iter__(self) -> Iterator[DocumentRows]:
        start = 0
        while start < self._end:
            end = self._content.find(b"\n", start)
            yield DocumentRows(*from_json(self._content[start:end]))
            start = end + 1

    def _checksum(self) -> int:
        with memoryview(self._content) as view:
            return zlib.crc32(view[: self._end])


class LaidOut:
    """A task whose data are read once for its layout, and then where a document stands."""

    def _layout(self) -> Layout:
        """Returns the layout.

        Raises:
            ConfigError: What is wrong with the rows.
            UserError: The file cannot be read, or has no rows.
        """
        raise NotImplementedError

    def examples_of(self, documents: Iterable[DocumentRows], first: int) -> Iterator[Example]:
        """Yields the examples on these documents; see `Sharded.examples_of`."""
        raise NotImplementedError

    def layout(self) -> Iterator[DocumentRows]:
        """Yields the documents, as they first appear."""
        yield from self._layout()

    def examples(self) -> Iterator[Example]:
        """Yields the examples, those on one document together."""
        yield from self.examples_of(self._layout(), 0)

    def __len__(self) -> int:
        """Returns the number of examples."""
        return self._layout().examples


def cached_layout(
    key: JSON, documents: Iterable[DocumentRows], facts: Mapping[str, JSON]
) -> Layout:
    """Returns a layout, from its file if there is one.

    Args:
        key: JSON that the layout depends on besides the code of this package; None for what cannot
            be told, whose file is not kept.
        documents: Documents, not iterated if there is a file. What they raise leaves none.
        facts: Values to note beside them; may be filled while the documents are iterated.

    Raises:
        UserError: There is no room for the file.
    """
    path = _path(key)
    if path and (layout := _read(path)):
        return layout
    with _new(path) as file:
        for _ in _appended(file, documents, facts):
            pass
        return Layout(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def cached_documents(key: JSON, documents: Iterable[DocumentRows]) -> Iterator[DocumentRows]:
    """Yields the documents of a layout that is kept, or these as they come, and keeps them.

    Args:
        key: Key as of `cached_layout`.
        documents: Documents to keep; if they are not all taken, nothing is kept.

    Raises:
        UserError: There is no room for the file.
    """
    path = _path(key)
    if path and (layout := _read(path)):
        yield from layout
        return
    with _new(path) as file:
        yield from _appended(file, documents, {})


def _path(key: JSON) -> Path | None:
    if key is None:
        return None
    # Another version of the code may find other documents, and gets a file of its own.
    content = json.dumps([_code(), key]).encode()
    return cache_directory() / f"layouts/{hashlib.sha256(content).hexdigest()}.jsonl"


def _read(path: Path) -> Layout | None:
    """Returns the layout in a file; None if there is none, or a damaged one."""
    with suppress(OSError, ValueError, KeyError), path.open("rb") as file:
        layout = Layout(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        with suppress(OSError):  # a folder that may not be written to
            os.utime(path)
        return layout
    return None


def _appended(
    file: IO[bytes], documents: Iterable[DocumentRows], facts: Mapping[str, JSON]
) -> Iterator[DocumentRows]:
    """Yields documents of which each has been written to a file, and the last line after them."""
    examples = checksum = 0
    for document in documents:
        line = _line([document.examples, document.bytes, document.rows])
        _append(file, line)
        yield document
        examples += document.examples
        checksum = zlib.crc32(line, checksum)
    _append(file, _line({"examples": examples, "facts": dict(facts), "crc32": checksum}))


@contextmanager
def _new(path: Path | None) -> Iterator[IO[bytes]]:
    """Opens a file that is renamed to the path; a nameless one where none can be."""
    with ExitStack() as stack:
        file = partial = None
        with suppress(OSError):  # a folder that may not be written to
            if path:
                partial = path.with_suffix(f".{os.getpid()}-{secrets.token_hex(4)}.partial")
                path.parent.mkdir(parents=True, exist_ok=True)
                file = stack.enter_context(partial.open("xb+"))
                stack.callback(partial.unlink, missing_ok=True)
        yield file or stack.enter_context(TemporaryFile())
        if file and partial and path:
            partial.replace(path)


def _append(file: IO[bytes], line: bytes) -> None:
    try:
        file.write(line)
        if line.startswith(b"{"):  # the last
            file.flush()
    except OSError as error:
        with suppress(OSError):  # closing it would write once more
            file.close()
        raise UserError(
            "where the documents of a task stand cannot be written to"
            f" {cache_directory()}: {error.strerror}; make room, or name another place with"
            " LEPORELLO_CACHE"
        ) from None


def _line(value: JSON) -> bytes:
    return to_json(value, inf_nan_mode="constants") + b"\n"


@cache
def _code() -> str:
    """Returns a hash of the code that finds layouts: what was sound for another may not be."""
    digest, here = hashlib.sha256(), Path(__file__)
    folders = (here.parent / "jsonl", here.parent / "official")
    for path in [here, *(file for folder in folders for file in sorted(folder.glob("*.py")))]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


Item = TypeVar("Item")


@dataclass(slots=True)
class ForwardReader(Generic[Item]):
    """Items by their numbers; an iterator goes on to a later item, and never back.

    Iterators stay open between readings, no more of them than there were readings at once.

    Attributes:
        begin: Function that starts at the first item.
    """

    begin: Callable[[], Iterator[Item]]
    _idle: list[tuple[int, Iterator[Item]]] = field(default_factory=list, init=False)

    def items(self, numbers: Iterable[int]) -> Iterator[Item]:
        """Yields the items of these numbers, quick if they grow; it ends at one that is missing."""
        cursor = None  # number of the next item, and the iterator
        try:
            for number in numbers:
                if cursor and cursor[0] > number:
                    self._idle.append(cursor)
                    cursor = None
                following, items = cursor or self._nearest(number)
                cursor = None  # an iterator that raises is not used again
                for item in islice(items, number - following, number - following + 1):
                    cursor = number + 1, items
                    yield item
                if not cursor:
                    return
        finally:
            if cursor:
                self._idle.append(cursor)

    def _nearest(self, number: int) -> tuple[int, Iterator[Item]]:
        before = [cursor for cursor in self._idle if cursor[0] <= number]
        if not before:
            self._idle.clear()
            return 0, self.begin()
        nearest = max(before, key=itemgetter(0))
        self._idle.remove(nearest)
        return nearest
