"""Reads several files of rows, in any format, as one sequence."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from leporello.core.files import Stamp, opened, sha256, stamp
from leporello.tasks.jsonl.columns import renamed
from leporello.tasks.jsonl.lines import FileRows, Line, LineRows
from leporello.tasks.jsonl.schema import Row, decode, validated
from leporello.tasks.jsonl.tables import ArrowRows, ArrowStream, ParquetRows
from leporello.tasks.jsonl.tars import PACKED, TarRows
from leporello.tasks.jsonl.unpacked import unpacked

# File and row share one integer, so that layouts, faults and the order of examples need no other
# code for shards than for a single file (decision 38).
LINES = 40  # lower bits of a number, which are the row in its file; higher bits are the file
_LINE = (1 << LINES) - 1
_USTAR = 257  # offset of a tar's magic bytes


# Formats are recognised by content: shards and unpacked copies have arbitrary suffixes.
_MARKS: Mapping[bytes, type[ArrowRows]] = {
    b"PAR1": ParquetRows,
    b"ARROW1": ArrowRows,
    b"\xff\xff\xff\xff": ArrowStream,
}


@dataclass(frozen=True, slots=True)
class RowFiles:
    """The rows of several files, in order; a row's number includes the number of its file.

    Attributes:
        files: Paths of the files.
        limit: Largest size of a row in bytes, expanded; larger rows have no content.
        ignore: Fields to ignore.
        columns: Columns by field, as for `renamed`; empty if the columns have the names of fields.
    """

    files: tuple[Path, ...]
    limit: int
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)

    def row(self, line: Line) -> Row:
        """Returns a row; a row above the size limit has no text.

        Raises:
            RowError: All faults of the row.
        """
        if line.content is None:
            name = f"row {self.name(line.number)}"
            # Kept, since leaving it out would shift the numbers of all later rows.
            return Row(id=name, document="", document_id=name)
        fields = decode(line.content) if isinstance(line.content, bytes) else line.content
        if self.columns or fields is line.content:
            # Renamed before validation, so that a field means the same in every format (decision
            # 38).
            fields = {"id": self.name(line.number), **line.given, **renamed(fields, self.columns)}
        elif line.given:
            fields = {**line.given, **fields}
        return validated(fields, self.ignore)

    def rows(self) -> Iterator[Line]:
        """Yields all rows.

        Raises:
            UserError: A file cannot be read, or is not a file of rows.
        """
        for number in range(len(self.files)):
            yield from self.numbered(self.opened(number).rows(), number)

    def numbered(self, rows: Iterator[Line], file: int) -> Iterator[Line]:
        """Returns the rows of a file, with the number of the file added to their numbers."""
        return (
            (line._replace(number=file << LINES | line.number) for line in rows) if file else rows
        )

    def opened(self, number: int) -> FileRows:
        """Returns the rows of a file, whose format is detected from the content, not the suffix."""
        path = self.files[number]
        local = unpacked(path)
        with opened(local) as file:
            head = file.read(_USTAR + 5)
        columns = dict.fromkeys(path.partition(".")[0] for path in self.columns.values())
        for mark, table in _MARKS.items():
            if head.startswith(mark):
                return table(local, path, self.limit, tuple(columns))
        if head[_USTAR:] == b"ustar":
            return TarRows(local, path, self.limit, number)
        return LineRows(local, path, self.limit)

    def packed(self, text: str) -> tuple[Path, bytes] | None:
        """Returns name and content of the tar member to which a text refers, or None."""
        match = PACKED.fullmatch(text)
        file = int(match[1]) if match else len(self.files)
        rows = self.opened(file) if file < len(self.files) else None
        return rows.member(match) if match and isinstance(rows, TarRows) else None

    def place(self, number: int) -> tuple[Path, int]:
        """Returns the file, and the line or row, of a number."""
        return self.files[number >> LINES], number & _LINE

    def name(self, number: int) -> str:
        """Returns the id of a row without one: its number, after the file if there are several."""
        file, line = self.place(number)
        return f"{file.name}:{line}" if len(self.files) > 1 else str(line)

    def location(self, number: int) -> str:
        """Returns the line of a row, for messages."""
        file, line = self.place(number)
        return f"line {line}" + (f" of {file.name}" if len(self.files) > 1 else "")

    def stamp(self) -> tuple[Stamp, ...]:
        """Returns the stamps of the files, which change if the files do."""
        return tuple(map(stamp, self.files))

    def sha256(self) -> str:
        """Returns the hash of the files, which includes the names of several files."""
        if len(self.files) == 1:
            return sha256(self.files[0])
        names = (f"{path.name}\0{sha256(path)}\n" for path in self.files)
        return hashlib.sha256("".join(names).encode()).hexdigest()


@dataclass(slots=True)
class RowReader:
    """Reader of rows by number; reading in order is fast in every format.

    Attributes:
        source: The files.
    """

    source: RowFiles
    _file: int = field(default=-1, init=False)
    _opened: FileRows = field(init=False)
    _rows: Iterator[Line] = field(init=False)
    _next: int = field(init=False)

    def read(self, number: int, offset: int, count: int) -> Iterator[Line]:
        """Yields `count` rows, or fewer if the file has changed.

        Raises:
            UserError: The file cannot be read.
        """
        if (file := number >> LINES) != self._file:
            self._opened, self._file, self._next = self.source.opened(file), file, sys.maxsize
        # A table cannot start within a row group: a jump would decode the group from its first row
        # again. It reads forward instead, which is slow only for distant rows (decision 38).
        if number < self._next or (number > self._next and self._opened.seeks):
            rows = self._opened.rows(number & _LINE, offset)
            self._rows = self.source.numbered(rows, file)
        for line in islice((line for line in self._rows if line.number >= number), count):
            self._next = line.number + 1
            yield line
