"""Writes rows as lines with the column name before each cell, so that each line explains itself."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from typing import Literal, TypeAlias

from leporello.core.records import Document, Place
from leporello.loaders.tables.blocks import SheetTable, tables
from leporello.loaders.tables.marks import Merged

# Whether the first row of a table names its columns: detected, yes, or no.
Header: TypeAlias = Literal["auto", "first", "none"]
Hidden: TypeAlias = tuple[Set[int], Set[int]]  # numbers of rows and of columns that are not written

NOTHING: Hidden = (frozenset(), frozenset())
_MOST_CELLS = 100_000  # places for cells; larger tables have places for rows
_LONGEST = 200  # characters of a merged cell's text that is repeated
_BREAKS = re.compile(r"(?<!\s)[^\S\t\n\r\v\f\x85\u2028\u2029]*+[\t\n\r\v\f\x85\u2028\u2029]\s*+")


def written(
    cells: Iterable[Sequence[str]],
    header: Header,
    row_name: Callable[[int], str],
    cell_name: Callable[[int, int], str] | None = None,
    *,
    merged: Iterable[Merged] = (),
    hidden: Hidden = NOTHING,
) -> Document:
    """Returns a sheet as text, with rows or cells as places; rows without text are skipped.

    A blank line separates tables. The text of merged cells is in all rows that they cover.
    `row_name` and `cell_name` name places by numbers from 0; without `cell_name` rows are places.
    """
    rows = [_flat(row) for row in cells]
    full = _carried(rows, merged)
    numbers = [n for n in range(len(rows)) if n not in hidden[0]]
    columns = [c for c in range(max(map(len, rows), default=0)) if c not in hidden[1]]
    if any(hidden):
        rows = [[*_kept(rows[n], columns)] for n in numbers]
        full = [[*_kept(full[n], columns)] for n in numbers]
    if cell_name and sum(map(len, rows)) > _MOST_CELLS:
        cell_name = None
    lines: list[str] = []
    places: list[Place] = []
    at = 0
    for table in _tables(rows, full, header):
        between = ": " if table.is_paired else "\t"
        if lines and not table.is_continued:
            lines.append("")
            at += 1
        for number, line in _lines(table, rows, full):
            lines.append(between.join([text for _, text in line]))
            end = at + len(lines[-1]) + 1
            if cell_name:
                for column, text in line:
                    following = min(at + len(text) + len(between), end)
                    if text:
                        name = cell_name(numbers[number], columns[column])
                        places.append(Place(name, at, following))
                    at = following
            else:
                places.append(Place(row_name(numbers[number]), at, end))
            at = end
    if places:  # no line break follows the last line
        places[-1] = Place(places[-1].name, places[-1].start, at - 1)
    return Document("", "\n".join(lines), places=(*places,))


def letters(column: int) -> str:
    """Returns the letters of a spreadsheet column, from 0: A, Z, AA."""
    name = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        name = chr(65 + letter) + name
    return name


def _flat(row: Sequence[str]) -> list[str]:
    cells = [*map(str.strip, row)]
    if "".join(cells).isprintable():
        return cells
    return [_BREAKS.sub(" ", cell) for cell in cells]


def _kept(row: Sequence[str], columns: Sequence[int]) -> Iterator[str]:
    return (row[c] for c in columns if c < len(row))


def _carried(rows: Sequence[list[str]], merged: Iterable[Merged]) -> Sequence[list[str]]:
    """Returns the rows with the text of merged cells in each cell that they cover."""
    full = [*rows]
    width = max(map(len, rows), default=0)
    space = width * len(rows)  # merged cells that take more overlap, in a corrupt file
    for top, first, bottom, last in merged:
        text = "".join(rows[top][first : first + 1]) if top < len(rows) else ""
        columns = range(first, min(last + 1, width))
        numbers = range(top, min(bottom + 1, len(rows)))
        space -= len(columns) * len(numbers)
        if not text or space < 0 or len(text) > _LONGEST:
            continue
        for n in numbers:
            if full[n] is rows[n]:
                full[n] = [*rows[n]]
            full[n] += [""] * (columns.stop - len(full[n]))
            for c in columns:
                full[n][c] = full[n][c] or text
    return full


def _tables(
    rows: Sequence[list[str]], full: Sequence[list[str]], header: Header
) -> Iterable[SheetTable]:
    if header == "auto":
        return tables(rows, full)
    columns = range(max(map(len, rows), default=0))
    first = next((n for n, row in enumerate(rows) if any(row)), 0)
    if header == "none" or not rows:
        return [SheetTable(range(len(rows)), columns, 0)]
    names = full[first] + [""] * (len(columns) - len(full[first]))
    return [SheetTable(range(first, len(rows)), columns, first + 1, names)]


def _lines(
    table: SheetTable, rows: Sequence[list[str]], full: Sequence[list[str]]
) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """Yields the number of each row with text, and the columns and texts of the cells to write."""
    columns = table.columns
    cut = slice(columns.start, columns.stop)
    before = [f"{name}: " if name else "" for name in table.names]
    for n in table.rows:
        row = cells = rows[n][cut]
        if not any(cells):
            continue
        if full[n] is not rows[n] and n >= table.body:
            row = full[n][cut]
        if row != cells and len({*filter(None, row)}) == 1 and cells.count("") == len(cells) - 1:
            # One cell over all columns has no name.
            yield n, [(c, text) for c, text in zip(columns, cells, strict=False) if text]
            continue
        if row != cells:
            row = _once(row, cells, table.names)
        if n >= table.body and before:
            triples = zip(columns, before, row, strict=False)
            yield n, [(c, name + text) for c, name, text in triples if text]
        elif table.is_paired:
            filled = [(c, text) for c, text in zip(columns, row, strict=False) if text]
            filled[0] = (filled[0][0], filled[0][1].removesuffix(":"))
            yield n, filled
        else:
            while not row[-1]:
                row.pop()
            yield n, [*zip(columns, row, strict=False)]


def _once(row: Sequence[str], cells: Sequence[str], names: Sequence[str]) -> list[str]:
    """Returns a row without texts of merged cells that repeat the cell before, name and all."""
    is_own = [*map(bool, cells), *[False] * (len(row) - len(cells))]
    return [
        ""
        if c and not is_own[c] and text == row[c - 1] and names[c : c + 1] == names[c - 1 : c]
        else text
        for c, text in enumerate(row)
    ]
