"""Reads several files of rows, in any format, as one sequence."""

import hashlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from leporello.core.errors import did_you_mean
from leporello.core.files import Stamp, opened, sha256, stamp
from leporello.tasks.jsonl.finding import unpacked
from leporello.tasks.jsonl.formats import (
    STREAM,
    ArrowRows,
    FileRows,
    Line,
    LineRows,
    ParquetRows,
)
from leporello.tasks.jsonl.schema import Row, RowError, decode, validated

# File and row share one integer, so that layouts, faults and the order of examples need no other
# code for shards than for a single file (decision 38).
LINES = 40  # lower bits of a number, which are the row in its file; higher bits are the file
_LINE = (1 << LINES) - 1
# Formats are recognised by content: shards and unpacked copies have arbitrary suffixes.
_MARKS: Mapping[bytes, type[ArrowRows]] = {
    b"PAR1": ParquetRows,
    b"ARROW1": ArrowRows,
    STREAM: ArrowRows,
}


@dataclass(frozen=True, slots=True)
class RowFiles:
    """The rows of several files, in order; a row's number includes the number of its file."""

    files: tuple[Path, ...]
    limit: int  # largest size of a row in bytes, expanded; larger rows have no content
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)  # as for `renamed`

    def row(self, line: Line) -> Row:
        """Returns a row, without text above the size limit; raises RowError with all faults."""
        if line.content is None:
            name = f"row {self.name(line.number)}"
            # Kept, since leaving it out would shift the numbers of all later rows.
            return Row(id=name, document="", document_id=name)
        fields = decode(line.content)
        if self.columns or fields is line.content:
            # Renamed before validation, so that a field means the same in every format.
            fields = {"id": self.name(line.number), **renamed(fields, self.columns)}
        return validated(fields, self.ignore)

    def rows(self) -> Iterator[Line]:
        """Yields all rows; raises UserError if a file is not a file of rows."""
        for number in range(len(self.files)):
            yield from self.opened(number).rows()

    def opened(self, number: int) -> FileRows:
        """Returns the rows of a file, whose format is detected from the content, not the suffix."""
        path = self.files[number]
        local = unpacked(path)
        with opened(local) as file:
            head = file.read(max(map(len, _MARKS)))
        columns = dict.fromkeys(path.partition(".")[0] for path in self.columns.values())
        for mark, table in _MARKS.items():
            if head.startswith(mark):
                return table(local, path, self.limit, number << LINES, tuple(columns))
        return LineRows(local, path, self.limit, number << LINES)

    def place(self, number: int) -> tuple[Path, int]:
        """Returns the file, and the line or row, of a number."""
        return self.files[number >> LINES], number & _LINE

    def name(self, number: int) -> str:
        """Returns the number of a row for users, after the file if there are several."""
        file, line = self.place(number)
        return f"{file.name}:{line}" if len(self.files) > 1 else str(line)

    def stamp(self) -> tuple[Stamp, ...]:
        """Returns the stamps of the files, which change if the files do."""
        return tuple(map(stamp, self.files))

    def sha256(self) -> str:
        """Returns the hash of the files, which includes the names of several files."""
        if len(self.files) == 1:
            return sha256(self.files[0])
        names = (f"{path.name}\0{sha256(path)}\n" for path in self.files)
        return hashlib.sha256("".join(names).encode()).hexdigest()


class RowReader:
    """Reader of rows by number; reading in order is fast in every format."""

    def __init__(self, source: RowFiles) -> None:
        self.source, self._file, self._next = source, -1, 0

    def read(self, number: int, offset: int, count: int) -> Iterator[Line]:
        """Yields `count` rows, or fewer if the file has changed."""
        if (file := number >> LINES) != self._file:
            self._opened, self._file, self._next = self.source.opened(file), file, sys.maxsize
        # A table cannot start within a row group: a jump would decode the group from its first row
        # again. It reads forward instead, which is slow only for distant rows (decision 38).
        if number < self._next or (number > self._next and self._opened.seeks):
            self._rows = self._opened.rows(number & _LINE, offset)
        for line in islice((line for line in self._rows if line.number >= number), count):
            self._next = line.number + 1
            yield line


_TEXTS = {
    "id", "document", "document_path", "document_id", "collection", "question", "title", "group",
}  # fmt: skip
_LISTS = {"references", "choices", "evidence"}


def check_columns(columns: Mapping[str, str]) -> None:
    """Raises ValueError if `columns` has a key that is not a field of a row."""
    for name in columns:
        if name not in Row.model_fields:
            hint = did_you_mean(name, Row.model_fields)
            raise ValueError(f"columns: unknown field {name!r}{hint}")


def renamed(fields: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns a row with the names of fields, without missing values.

    `columns` has a column by field, if they are renamed; `answers.text` is a path within objects
    and lists of objects. Where a field requires it, numbers become text, a single text becomes a
    list, and the paragraphs of a document become one text. Raises RowError for a missing column.
    """
    values = {field: _at(fields, path) for field, path in columns.items()} if columns else fields
    return {field: _fit(field, value) for field, value in values.items() if value is not None}


def _at(fields: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 -- any JSON
    # The name of a column may itself contain a dot.
    if path in fields:
        return fields[path]
    value: Any = fields
    for name in path.split("."):
        value = _values_of(value, name, path)
    return value


def _values_of(value: Any, name: str, path: str) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, list):
        values = [_values_of(item, name, path) for item in value]
        return [v for item in values for v in (item if isinstance(item, list) else [item])]
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise RowError([f"has no column {path!r}{did_you_mean(name, [*value])}"])
    if value is None:
        return None
    raise RowError([f"column {path!r}: a {type(value).__name__} has no {name!r}"])


def _fit(field: str, value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if field == "document" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n\n".join(value)
    if field in _TEXTS:
        return _text(value)
    if field in _LISTS and not isinstance(value, list):
        value = [value]
    return [_text(item) for item in value if item is not None] if field in _LISTS else value


def _text(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    # Ids and answers are often numbers in tables, and fields of rows are texts.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
