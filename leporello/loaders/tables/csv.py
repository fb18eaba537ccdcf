"""Tables as text, with commas, tabs or semicolons between values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.environment.input_limits import TABLE_COLUMNS
from leporello.core.errors import UserError
from leporello.core.records import Document
from leporello.loaders.files import Format
from leporello.loaders.tables.rows import Header, written
from leporello.loaders.text import decoded

_SAMPLE = 2**16  # characters
_TABS = (".tsv", ".tab")
_NAMED = re.compile(r"sep=(.)\r?\n", re.I)  # a first line for Excel
# Commas in numbers between other delimiters.
_DECIMAL = re.compile(r"(?<=\d),(?=\d+[;\t|])|(?<=[;\t|]\d),(?=\d)|(?<=[;\t|]\d\d),(?=\d)")


@dataclass(frozen=True)
class Csv(Format):
    """Tables as text (csv, tsv): one line per row, with column names.

    Attributes:
        delimiter: Character between values; detected if empty.
        header: Whether the first row names the columns, so that each value is written as
            `Name: value`: detected (`auto`), yes (`first`), or no (`none`).
    """

    suffixes = (".csv", *_TABS)

    delimiter: str = ""
    header: Header = "auto"
    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the rows; places are first `row 7`, counted from the first row of the file."""
        raw = decoded(data, path, self.encoding, "Csv")
        text = raw.text
        csv.field_size_limit(max(csv.field_size_limit(), len(text) + 1))
        first = _NAMED.match(text)
        delimiter = self.delimiter or (first[1] if first else _delimiter(text, path))
        lines = [*io.StringIO(text, newline="")]
        for number, line in enumerate(lines, 1):
            if line.count(delimiter) >= TABLE_COLUMNS:
                raise UserError(f"{path}:{number}: more than {TABLE_COLUMNS:,} values in a row")
        rows = [[], *_rows(lines[1:], delimiter)] if first else _rows(lines, delimiter)
        table = written(rows, self.header, lambda row: f"row {row + 1}")
        return replace(table, losses=raw.losses, notes=raw.notes)


def _delimiter(text: str, path: Path) -> str:
    """Returns the delimiter that splits the first rows into equally many values, and most."""
    head = text[:_SAMPLE]
    if path.suffix.lower() in _TABS and "\t" in head:
        return "\t"

    def evenness(delimiter: str) -> tuple[float, int]:
        sample = _DECIMAL.sub(".", head) if delimiter == "," else head
        rows = [*csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)]
        widths = [len(row) for row in rows[: -1 if len(text) > _SAMPLE else None] if row]
        usual = max({*widths}, key=widths.count, default=1)
        return (widths.count(usual) / len(widths) if usual > 1 else 0.0, usual)

    scores = {delimiter: evenness(delimiter) for delimiter in "\t;|," if delimiter in head}
    best = max(scores, key=scores.__getitem__, default=",")
    return best if scores.get(best, (0.0,))[0] else ","


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Returns the rows; a quotation mark that is never closed makes all be read as letters."""
    try:
        return [*csv.reader(lines, delimiter=delimiter, strict=True)]
    except csv.Error as error:
        if "unexpected end" not in str(error):
            return [*csv.reader(lines, delimiter=delimiter)]
        return [*csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)]
