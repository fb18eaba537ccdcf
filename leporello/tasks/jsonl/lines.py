"""Reads the lines of a JSON Lines file in bounded memory."""

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
_HEAD = 1 << 12  # bytes from which the encoding is detected


class Line(NamedTuple):
    """A row of a file.

    Attributes:
        number: Number of the line or row, from 1.
        offset: Position where reading must start to find the row: a byte, or a row group.
        size: Size in bytes.
        content: JSON of an object, or the object; None for a row above the size limit.
        given: Fields that the file adds to the row; fields of the row take precedence.
    """

    number: int
    offset: int
    size: int
    content: bytes | Mapping[str, Any] | None
    given: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class FileRows:
    """Rows of a file.

    Attributes:
        local: Path of the file on this machine.
        path: Path of the file as in the config.
        limit: Largest size of a row in bytes; larger rows have no content.
        seeks: Whether reading can start at any row without reading earlier rows.
    """

    seeks: ClassVar[bool] = True

    local: Path
    path: Path
    limit: int

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the rows from one on, given its number and offset as in `Line`.

        Raises:
            UserError: The file is damaged, or has another format.
        """
        raise NotImplementedError


class LineRows(FileRows):
    """Lines of a JSON Lines file; at most one line is in memory."""

    def rows(self, number: int = 1, offset: int = 0) -> Iterator[Line]:
        """Yields the lines, except blank ones; see `FileRows.rows`."""
        with opened(self.local) as file:
            if not offset:
                self._check_encoding(file.read(_HEAD))
            file.seek(offset)
            while content := file.readline(self.limit + 1):
                size = len(content)
                # The rest of an oversized line is counted in blocks and dropped, so that a
                # decompression bomb costs no memory. It keeps its number, like any row (decision
                # 38).
                while size > self.limit and content and not content.endswith(b"\n"):
                    content = file.readline(_BLOCK)
                    size += len(content)
                if size > self.limit or not content.isspace():
                    yield Line(number, offset, size, content if size <= self.limit else None)
                number, offset = number + 1, offset + size

    def _check_encoding(self, head: bytes) -> None:
        encoding = looks_like(head)
        if encoding.startswith(("UTF-16", "UTF-32")):
            raise UserError(
                f"{self.path}: is in {encoding}, but JSON Lines must be UTF-8; convert it:"
                f" iconv -f {encoding} -t UTF-8 {self.path.name} > utf8.jsonl"
            )
