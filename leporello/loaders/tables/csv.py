"""Tables as text, with commas, tabs or semicolons between values."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.environment.input_limits import TABLE_COLUMNS
from leporello.core.errors import UserError
from leporello.loaders.files import Format
from leporello.loaders.tables.rows import Header, written
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted

_SAMPLE = 2**16  # characters


@dataclass(frozen=True)
class Csv(Format):
    """Tables as text (csv, tsv): one line per row, with column names.

    Attributes:
        delimiter: Character between values; detected if empty.
        header: Whether the first row names the columns, so that each value is written as
            `Name: value`: detected (`auto`), yes (`first`), or no (`none`).
        encoding: Encoding of files without a byte order mark; detected if empty.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv", ".tsv", ".tab")

    delimiter: str = ""
    header: Header = "auto"
    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the rows; places are named `row 7`, counted from the first row of the file.

        Raises:
            UserError: The file is not text, or a row has too many values.
        """
        raw = decoded(data, path, self.encoding, "Csv")
        text = raw.text
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        delimiter = self._delimiter(text)
        rows = csv.reader(_lines(text, delimiter, path), delimiter=delimiter)
        table = written(rows, self.header, lambda row: f"row {row + 1}")
        return replace(table, losses=raw.losses, notes=raw.notes)

    def _delimiter(self, text: str) -> str:
        """Returns the delimiter that splits the first rows into equally many values, and most."""
        if self.delimiter:
            return self.delimiter
        head = text[:_SAMPLE]

        def evenness(delimiter: str) -> tuple[float, int]:
            rows = [*csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)]
            widths = [len(row) for row in rows[: -1 if len(text) > _SAMPLE else None] if row]
            usual = max({*widths}, key=widths.count, default=1)
            return (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)

        return max(",\t;|", key=evenness)


def _lines(text: str, delimiter: str, path: Path) -> Iterator[str]:
    """Yields the lines; refuses a line with too many values for a table."""
    for number, line in enumerate(io.StringIO(text, newline=""), 1):
        if line.count(delimiter) >= TABLE_COLUMNS:
            raise UserError(f"{path}:{number}: more than {TABLE_COLUMNS:,} values in a row")
        yield line
