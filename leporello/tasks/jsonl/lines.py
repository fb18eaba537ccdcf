"""The lines of a JSON Lines file, read in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from leporello.core.errors import UserError
from leporello.core.files import opened
from leporello.text.looks import looks_like

_BLOCK = 1 << 20  # bytes that are skipped at once
_HEAD = 1 << 12  # bytes that tell the encoding


class Line(NamedTuple):
    """A row as it stands in its file.

    Attributes:
        number: Number of the line, or of the row, from 1.
        offset: Where reading begins to find it: a byte, or the number of a group of rows.
        size: Size in bytes.
        content: JSON of an object, or the object; None for a row that is larger than it may be.
        given: Fields that the file gives the row beside its own, which go first.
    """

    number: int
    offset: int
    size: int
    content: bytes | Mapping[str, Any] | None
    given: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class FileRows:
    """The rows of a file of one format.

    Attributes:
        local: Path of the file on this machine.
        path: Path of the file as the user names it.
        limit: Bytes of a row at most; a larger one has no content.
        seeks: Whether reading can begin in the middle without reading the rows before it.
    """

    seeks: ClassVar[bool] = True

    local: Path
    path: Path
    limit: int

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the row of this number, which a `Line` had with this offset, and all after it.

        Raises:
            UserError: The file is damaged, or not of this format.
        """
        raise NotImplementedError


class LineRows(FileRows):
    """A JSON Lines file, read in the memory of the largest line that may be read."""

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the lines that are not blank; see `FileRows.rows`."""
        with opened(self.local) as file:
            if not offset:
                self._check_encoding(file.read(_HEAD))
            file.seek(offset)
            while content := file.readline(self.limit + 1):
                size = len(content)
                while size > self.limit and content and not content.endswith(b"\n"):
                    content = file.readline(_BLOCK)
                    size += len(content)
                if size > self.limit or not content.isspace():
                    yield Line(number, offset, size, content if size <= self.limit else None)
                number, offset = number + 1, offset + size

    def _check_encoding(self, head: bytes) -> None:
        found = looks_like(head)
        if found.startswith(("UTF-16", "UTF-32")):
            raise UserError(
                f"{self.path}: is in {found}, and JSON lines are UTF-8; convert it:"
                f" iconv -f {found} -t UTF-8 {self.path.name} > utf8.jsonl"
            )
