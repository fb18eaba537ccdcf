"""Writes rows as lines of text, with the column name before each cell.

So each row can be understood in any chunk of the table (decision 35).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from leporello.core.records import Place
from leporello.text.outline import Extracted

# Whether the first row of a table names its columns: detected, yes, or no.
Header: TypeAlias = Literal["auto", "first", "none"]

# Reports have a title, a date and a source above the header, rarely more.
_FIRST = 10  # rows that are searched for a header; titles and blank rows may precede it
_LOOKED_AT = 50  # rows below a possible header that are examined
# A place takes some hundred bytes; a row is precise enough to find a cell in a large table.
_MOST_CELLS = 100_000  # places for cells; larger tables have places for rows
_FIGURE = re.compile(r"[-+(]?[$€£¥]?\s*\d[\d.,:/%\s-]*\)?[$€£¥%]?|true|false", re.I)
_BREAKS = re.compile(r"(?<!\s)[^\S\t\n\r\v\f\x85\u2028\u2029]*+[\t\n\r\v\f\x85\u2028\u2029]\s*+")


def written(
    rows: Iterable[Sequence[str]],
    header: Header,
    row_name: Callable[[int], str],
    cell_name: Callable[[int, int], str] | None = None,
) -> Extracted:
    """Returns a table as text, with rows or cells as places; rows without text are skipped.

    Args:
        rows: Cells of each row.
        header: Whether a row names the columns.
        row_name: Function that returns the name of a row, from 0.
        cell_name: Function that returns the name of a cell by row and column; None for rows as
            places.
    """
    filled = [
        (n, [_flat(c) for c in row]) for n, row in enumerate(rows) if any(map(str.strip, row))
    ]
    top = _header([row for _, row in filled], header)
    names = filled[top][1] if top is not None else []
    if cell_name and sum(len(row) for _, row in filled) > _MOST_CELLS:
        cell_name = None
    lines: list[str] = []
    places: list[Place] = []
    at = 0
    for i, (number, row) in enumerate(filled):
        cells = _cells(row, names if top is not None and i > top else [])
        lines.append("\t".join(text for _, text in cells))
        end = at + len(lines[-1]) + (i < len(filled) - 1)
        if cell_name:
            start = at
            for column, text in cells:
                following = start + len(text) + 1
                name = cell_name(number, column)
                places += [Place(name, start, min(following, end))] if text else []
                start = following
        places += [] if cell_name else [Place(row_name(number), at, end)]
        at = end
    return Extracted("\n".join(lines), places=(*places,))


def letters(column: int) -> str:
    """Returns the letters of a spreadsheet column, from 0: A, Z, AA."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(65 + letter) + name
    return name


def _flat(cell: str) -> str:
    return _BREAKS.sub(" ", cell.strip())


def _cells(row: Sequence[str], names: Sequence[str]) -> list[tuple[int, str]]:
    """Returns the columns and texts of the cells to write."""
    if not names:
        last = max(i for i, cell in enumerate(row) if cell)
        return [*enumerate(row[: last + 1])]
    padded = [*names, *[""] * (len(row) - len(names))]
    pairs = enumerate(zip(padded, row, strict=False))
    # The header is in each chunk, whatever the chunker, and spans stay exact (decision 35).
    return [(i, f"{name}: {cell}" if name else cell) for i, (name, cell) in pairs if cell]


def _header(rows: Sequence[Sequence[str]], header: Header) -> int | None:
    """Returns the index of the row that names the columns; None without such a row.

    A header is as wide as any row, has a different word in each column, and is above figures; with
    three or more columns it may be above other text.
    """
    if header != "auto":
        return 0 if header == "first" and rows else None
    widest = max((sum(map(bool, row)) for row in rows[:_LOOKED_AT]), default=0)
    for i, row in enumerate(rows[:_FIRST]):
        cells = [cell for cell in row if cell]
        below = rows[i + 1 : i + _LOOKED_AT]
        # A row with empty cells does not name all columns, and a single cell is a title.
        if len(cells) < max(widest, 2) or not below:
            continue
        # Equal cells in a row are data; so are numbers, except years, which need `header: first`.
        words = len({*cells}) == len(cells) and not any(map(_FIGURE.fullmatch, cells))
        figures = any(_FIGURE.fullmatch(cell) for row in below for cell in row)
        return i if words and (figures or len(cells) > 2) else None  # noqa: PLR2004 -- see above
    return None
