"""Finds the tables of a sheet: their rows, columns, and names of columns."""

import re
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
_SHORT = 50  # rows; in longer tables one word among figures is not a name of a column
_LABEL = 60  # characters of the longest label of a value
_FIGURES = frozenset("0123456789-+($€£¥.")
_NOTE = re.compile(r"[*#†(]|(?:notes?|sources?)\b", re.I)
_STATE = re.compile(r"\w+ed|lost|sold|sunk|open", re.I)  # words among figures


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
                for table in sheet.split(block, columns, before):
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

    def split(
        self, block: range, columns: range, before: SheetTable | None
    ) -> Iterator[SheetTable]:
        """Yields the tables of a block; a header directly below a table begins another one."""
        header = self._heading(block, columns)
        if before and columns.start == before.columns.start:
            names = self._continued(block, columns, before, is_headed=header is not None)
            if names is not None:
                is_paired = before.is_paired
                yield SheetTable(block, columns, block.start, names, is_paired, is_continued=True)
                return
        first = self._cells(block[:LOOKED_AT], columns)
        if header and _is_mixed(first[header.start :]):
            header = None
        elif not header and before and before.names and len(before.columns) == TWO:
            header = _words(first)
        start = block.start
        while header:
            body = range(start + header.stop, block.stop)
            end = self._next_header(body, columns, header)
            notes = self._notes(range(body.start, end), columns)
            yield SheetTable(range(start, notes), columns, body.start, header.names)
            if notes < end:
                yield SheetTable(range(notes, end), columns, notes, is_continued=True)
            start = end
            header = self._heading(range(start, block.stop), columns)
        if start < block.stop:
            is_paired = start == block.start and _is_paired(first)
            yield SheetTable(range(start, block.stop), columns, start, (), is_paired)

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

    def _next_header(self, body: range, columns: range, above: HeaderRows) -> int:
        """Returns the number of the row at which another table begins; the end without one."""
        cells = self._cells(body[:_SOME], columns)
        in_rows = ([c for c, cell in enumerate(row) if is_figure(cell)] for row in cells)
        figures = next(filter(None, in_rows), [])
        first = columns[figures[0]] if figures else columns.stop
        for n in body[1:-1]:
            cell = self.rows[n][first] if first < len(self.rows[n]) else ""
            if not cell or cell[0] in _FIGURES:  # in most rows
                continue
            if self._is_header(range(n, body.stop), columns, above, figures):
                row, *words = self._cells([n, *body[: _SHORT + 1]], columns)
                column = [cells[figures[0]] for cells in words]
                is_likely = len(column) <= _SHORT and column.count(cell) == 1
                is_likely = is_likely and not _STATE.fullmatch(cell)
                if is_likely or row == above.names or sum(bool(row[c]) for c in figures) > 1:
                    return n - self._alone(range(body.start + 1, n), columns)  # titles
        return body.stop

    def _is_header(
        self, rows: range, columns: range, above: HeaderRows, figures: Sequence[int]
    ) -> bool:
        """Returns whether the first row, of words in the case of the names above, names columns."""
        row, below = self._cells(rows[:2], columns)
        words = [cell for cell in row if cell]
        cases = {name[:1].isupper() for name in above.names if name}
        return (
            len(words) > 1
            and all(map(_is_word, words))
            and all(row[c] or not below[c] for c in figures)
            and (len(cases) > 1 or {word[:1].isupper() for word in words} == cases)
            and any(word and is_figure(cell) for word, cell in zip(row, below, strict=True))
        )

    def _alone(self, rows: range, columns: range) -> int:
        """Returns the number of rows at the end that have text in the first column only."""
        cells = slice(columns.start, columns.stop)
        count = 0
        for n in reversed(rows):
            row = self.rows[n][cells]
            if not row[0] or any(row[1:]):
                break
            count += 1
        return count

    def _notes(self, body: range, columns: range) -> int:
        """Returns the first row of notes, alone in the first column, below a table; or its end."""
        start = body.stop - self._alone(body[1:], columns)
        cells = [row[0] for row in self._cells(body, columns[:1])] if start < body.stop else []
        longest = max(map(len, cells[: start - body.start]), default=0)
        texts = cells[start - body.start :]
        are_notes = all(_NOTE.match(t) or (" " in t and len(t) > longest) for t in texts)
        return start if are_notes else body.stop


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


def _words(rows: Rows) -> HeaderRows | None:
    """Returns a first row of two words as header, above rows of two cells."""
    is_header = len(rows) > TWO and len(rows[0]) == TWO and all(map(_is_word, rows[0]))
    return HeaderRows(0, 1, rows[0]) if is_header and all(map(all, rows)) else None


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
