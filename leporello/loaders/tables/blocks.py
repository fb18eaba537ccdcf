"""Finds the tables of a sheet: their rows, columns, and names of columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, groupby

from leporello.loaders.tables.headings import (
    LOOKED_AT,
    MOST,
    TWO,
    HeaderRows,
    Rows,
    heading,
    is_figure,
    is_missing,
)

_SOME = 5  # rows whose cells show which columns have figures
_LABEL = 60  # characters of the longest label of a value


@dataclass(frozen=True, slots=True)
class SheetTable:
    """Consecutive rows of a sheet with the same columns."""

    rows: range  # numbers of the rows, some of which may be blank
    columns: range  # numbers of the columns
    body: int  # number of the first row after titles and header
    names: Sequence[str] = ()  # names of the columns; empty without a header
    is_paired: bool = False  # whether each row is a label and its value
    is_continued: bool = False  # whether the rows belong to those of the table before


def tables(rows: Rows, full: Rows) -> Iterator[SheetTable]:
    """Yields the tables of a sheet in reading order.

    Blank rows end a table, unless rows follow that fit its columns and have no header. A blank
    column separates tables if both sides have a header over two columns. `full` are the rows with
    the text of merged cells in each cell that they cover.
    """
    sheet = _Sheet(rows, full)
    before = None
    for band in sheet.filled(range(len(rows)), range(2**20)):
        for columns in sheet.sides(band):
            for block in sheet.filled(band, columns):
                table = sheet.table(block, columns, before)
                is_titled = before and len(before.columns) == 1 and len(before.rows) < _SOME
                before = replace(table, is_continued=True) if is_titled else table
                yield before


class _Sheet:
    """Rows of a sheet; `full` has the text of merged cells in each cell that they cover."""

    def __init__(self, rows: Rows, full: Rows) -> None:
        self.rows = rows
        self.full = full

    def filled(self, numbers: range, columns: range) -> Iterator[range]:
        """Yields the runs of rows with text in some columns."""
        cells = slice(columns.start, columns.stop)
        for is_filled, run in groupby(numbers, lambda n: any(self.rows[n][cells])):
            if is_filled:
                block = [*run]
                yield range(block[0], block[-1] + 1)

    def sides(self, band: range) -> list[range]:
        """Returns the columns of the tables that are side by side in some rows."""
        width = max(len(self.rows[n]) for n in band)
        blank = {*range(width)}
        for n in band:
            blank -= {c for c in blank if self.rows[n][c : c + 1] not in ([], [""])}
            if not blank:
                return [range(width)]
        sides: list[range] = []
        is_table = False  # whether the last side has a header
        for is_blank, run in groupby(range(width), blank.__contains__):
            if is_blank:
                continue
            filled = [*run]
            side = range(filled[0], filled[-1] + 1)
            block = next(self.filled(band, side))
            is_headed = len(side) > 1 and self._heading(block, side) is not None
            if sides and not (is_headed and is_table):
                side = range(sides.pop().start, side.stop)
                is_headed |= is_table
            sides.append(side)
            is_table = is_headed
        return sides

    def table(self, block: range, columns: range, before: SheetTable | None) -> SheetTable:
        """Returns a block as a table, perhaps with the header of the table before."""
        header = self._heading(block, columns)
        if before and columns.start == before.columns.start:
            names = self._continued(block, columns, before, is_headed=header is not None)
            if names is not None:
                return SheetTable(block, columns, block.start, names, before.is_paired, True)
        first = self._cells(block[:LOOKED_AT], columns)
        if header and not _is_mixed(first[header.start :]):
            return SheetTable(block, columns, block.start + header.stop, header.names)
        return SheetTable(block, columns, block.start, (), _is_paired(first))

    def _cells(self, numbers: Iterable[int], columns: range) -> list[list[str]]:
        """Returns the cells of some rows and columns, with all rows equally wide."""
        return _cut(self.rows, numbers, columns)

    def _heading(self, numbers: Sequence[int], columns: range) -> HeaderRows | None:
        first = numbers[:LOOKED_AT]
        return heading(self._cells(first, columns), _cut(self.full, first, columns))

    def _continued(
        self, block: range, columns: range, before: SheetTable, *, is_headed: bool
    ) -> Sequence[str] | None:
        """Returns the names of columns if rows belong to the table before; None otherwise."""
        if columns.stop > before.columns.stop:
            return None
        here = self._cells(block[:LOOKED_AT], before.columns)
        if before.names:
            above = range(before.body, before.rows.stop)[:LOOKED_AT]
            cells = self._cells(above, before.columns)
            return before.names if _fits(here, cells, is_headed=is_headed) else None
        lines = before.rows
        if before.body == lines.start and len(lines) < _SOME:
            header = self._heading([*lines, *block], before.columns)
            if header and header.stop == len(lines):
                return header.names  # it is above a blank row
        is_same = columns == before.columns and not is_headed
        return () if is_same and before.is_paired == _is_paired(here) else None


def _cut(rows: Rows, numbers: Iterable[int], columns: range) -> list[list[str]]:
    cells = ([*rows[n][columns.start : columns.stop]] for n in numbers)
    return [row + [""] * (len(columns) - len(row)) for row in cells]


def _fits(rows: Rows, above: Rows, *, is_headed: bool) -> bool:
    """Returns whether rows after a blank row belong to the table above, by figures or words."""
    columns = [[cell for cell in column if cell] for column in zip(*above, strict=True)]
    figures = [
        c
        for c, column in enumerate(columns)
        if any(map(is_figure, column)) and not any(map(_is_word, column))
    ]
    if figures:
        fits = not any(_is_word(row[c]) for row in rows for c in figures)
        fits = fits and any(is_figure(row[c]) for row in rows for c in figures)
    else:
        fits = not is_headed or any(c in column for c, column in zip(rows[0], columns, strict=True))
    return fits and 2 * sum(sum(map(bool, row)) > 1 for row in rows) > len(rows)


def _is_mixed(rows: Rows) -> bool:
    """Returns whether the second of two columns has figures and words, as values of labels do."""
    if len(rows[0]) != TWO:
        return False
    values = [value for _, value in rows[1:] if value and not is_missing(value)]
    are_figures = sum(map(is_figure, values)) >= MOST * len(values)
    return not are_figures or all(label.endswith(":") for label, _ in rows if label)


def _is_paired(rows: Rows) -> bool:
    """Returns whether two columns are labels and their values, maybe below titles."""
    rows = [*dropwhile(lambda row: not all(row), rows)] or rows
    labels = [row[0] for row in rows if all(row)]
    return (
        len(rows[0]) == TWO
        and len(labels) > 1
        and len(labels) >= MOST * sum(map(any, rows))
        and len({*labels}) == len(labels)
        and all(len(label) <= _LABEL and not is_figure(label) for label in labels)
    )


def _is_word(cell: str) -> bool:
    return bool(cell) and not is_figure(cell) and not is_missing(cell)
