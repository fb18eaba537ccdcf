"""Finds the tables of a sheet: their rows, columns, and names of columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from leporello.loaders.tables.headings import (
    LOOKED_AT,
    MOST,
    TWO,
    Heading,
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
class Table:
    """Consecutive rows of a sheet with the same columns.

    Attributes:
        rows: Numbers of the rows, some of which may be blank.
        columns: Numbers of the columns.
        body: Number of the first row after titles and header.
        names: Names of the columns; empty without a header.
        is_paired: Whether each row is a label and its value.
        is_continued: Whether the rows belong to those of the table before.
    """

    rows: range
    columns: range
    body: int
    names: Sequence[str] = ()
    is_paired: bool = False
    is_continued: bool = False


def tables(rows: Rows, full: Rows) -> Iterator[Table]:
    """Yields the tables of a sheet in reading order.

    Blank rows end a table, unless rows follow that fit its columns and have no header. A blank
    column separates tables if both sides have a header over two columns.

    Args:
        rows: Cells of the rows, without blanks around their texts.
        full: The same rows with the text of merged cells in each cell that they cover.
    """
    before = None
    for band in _filled(rows, range(len(rows)), range(2**20)):
        for columns in _sides(rows, full, band):
            for block in _filled(rows, band, columns):
                for table in _split(rows, full, block, columns, before):
                    is_titled = before and len(before.columns) == 1 and len(before.rows) < _SOME
                    before = replace(table, is_continued=True) if is_titled else table
                    yield before


def _filled(rows: Rows, numbers: range, columns: range) -> Iterator[range]:
    """Yields the runs of rows with text in some columns."""
    cells = slice(columns.start, columns.stop)
    for is_filled, run in groupby(numbers, lambda n: any(rows[n][cells])):
        if is_filled:
            found = [*run]
            yield range(found[0], found[-1] + 1)


def _sides(rows: Rows, full: Rows, band: range) -> list[range]:
    """Returns the columns of the tables that are side by side."""
    width = max(len(rows[n]) for n in band)
    blank = {*range(width)}
    for n in band:
        blank -= {c for c in blank if rows[n][c : c + 1] not in ([], [""])}
        if not blank:
            return [range(width)]
    sides: list[range] = []
    is_table = False  # whether the last side has a header
    for is_blank, run in groupby(range(width), blank.__contains__):
        if is_blank:
            continue
        filled = [*run]
        side = range(filled[0], filled[-1] + 1)
        is_headed = len(side) > 1 and _heading(rows, full, band, side) is not None
        if sides and not (is_headed and is_table):
            side = range(sides.pop().start, side.stop)
            is_headed |= is_table
        sides.append(side)
        is_table = is_headed
    return sides


def _cells(rows: Rows, numbers: Iterable[int], columns: range) -> list[list[str]]:
    """Returns the cells of some rows and columns, with all rows equally wide."""
    cells = ([*rows[n][columns.start : columns.stop]] for n in numbers)
    return [row + [""] * (len(columns) - len(row)) for row in cells]


def _heading(rows: Rows, full: Rows, numbers: Sequence[int], columns: range) -> Heading | None:
    first = numbers[:LOOKED_AT]
    return heading(_cells(rows, first, columns), _cells(full, first, columns))


def _split(
    rows: Rows, full: Rows, block: range, columns: range, before: Table | None
) -> Iterator[Table]:
    """Yields the tables of a block of rows; a header directly below a table begins another one."""
    found = _heading(rows, full, block, columns)
    names = _continued(rows, full, block, columns, before, found) if before else None
    if before and names is not None:
        yield Table(block, columns, block.start, names, before.is_paired, is_continued=True)
        return
    if found and _is_mixed(rows, block[found.start :], columns):
        found = None
    found = found or _like(rows, block, columns, before)
    if not found:
        yield Table(block, columns, block.start, (), _is_paired(rows, block, columns))
        return
    body = range(block.start + found.stop, block.stop)
    end = _next_header(rows, body, columns, found)
    notes = _notes(rows, range(body.start, end), columns)
    yield Table(range(block.start, notes), columns, body.start, found.names)
    if notes < end:
        yield Table(range(notes, end), columns, notes, is_continued=True)
    if end < block.stop:
        yield from _split(rows, full, range(end, block.stop), columns, None)


def _continued(
    rows: Rows, full: Rows, block: range, columns: range, before: Table, found: Heading | None
) -> Sequence[str] | None:
    """Returns the names of columns of the table before, if the block belongs to it; else None."""
    if columns.start != before.columns.start or columns.stop > before.columns.stop:
        return None
    if not before.names:
        last = before.rows.stop - 1
        if before.body == last and (
            alone := _heading(rows, full, [last, *block], before.columns)
        ) and alone.stop == 1:
            return alone.names  # a header above a blank row
        is_same = columns == before.columns and not found
        return () if is_same and before.is_paired == _is_paired(rows, block, columns) else None
    above = _cells(rows, range(before.body, before.rows.stop)[:LOOKED_AT], before.columns)
    here = _cells(rows, block[:LOOKED_AT], before.columns)
    of_figures = _of_figures(above)
    if of_figures:
        fits = all(not any(map(_is_word, (row[c] for row in here))) for c in of_figures)
        is_own = not any(is_figure(row[c]) for row in here for c in of_figures)
    else:
        fits = True
        is_own = found is not None and not any(
            cell and cell == row[c] for row in above for c, cell in enumerate(here[0])
        )
    are_rows = 2 * sum(_count(row) > 1 for row in here) > len(here)
    return before.names if fits and are_rows and not is_own else None


def _like(rows: Rows, block: range, columns: range, before: Table | None) -> Heading | None:
    """Returns the first row of two words as header, if the table before it has such a header."""
    first, *below = _cells(rows, block[:LOOKED_AT], columns)
    if not before or not before.names or not len(columns) == len(before.columns) == TWO:
        return None
    is_header = all(map(_is_word, first)) and len(below) > 1 and all(map(all, below))
    return Heading(0, 1, first) if is_header else None


def _is_mixed(rows: Rows, numbers: range, columns: range) -> bool:
    """Returns whether the second of two columns has figures and words, as values of labels do."""
    cells = _cells(rows, numbers[:LOOKED_AT], columns)
    values = [row[1] for row in cells[1:] if len(row) == TWO and row[1] and not is_missing(row[1])]
    are_figures = sum(map(is_figure, values)) >= MOST * len(values)
    are_labels = all(row[0].endswith(":") for row in cells if row[0])
    return len(columns) == TWO and bool(values) and (are_labels or not are_figures)


def _is_paired(rows: Rows, numbers: range, columns: range) -> bool:
    """Returns whether two columns are labels and their values."""
    cells = [row for row in _cells(rows, numbers[:LOOKED_AT], columns) if any(row)]
    labels = [row[0] for row in cells if all(row)]
    return (
        len(columns) == TWO
        and len(labels) > max(1, MOST * len(cells) - 1)
        and len({*labels}) == len(labels)
        and all(len(label) <= _LABEL and not is_figure(label) for label in labels)
    )


def _of_figures(cells: Rows) -> list[int]:
    """Returns the columns that have figures and no words."""
    columns = ([cell for cell in column if cell] for column in zip(*cells, strict=True))
    return [
        c
        for c, column in enumerate(columns)
        if any(map(is_figure, column)) and not any(map(_is_word, column))
    ]


def _is_word(cell: str) -> bool:
    return bool(cell) and not is_figure(cell) and not is_missing(cell)


def _count(row: Sequence[str]) -> int:
    return sum(map(bool, row))


def _next_header(rows: Rows, body: range, columns: range, above: Heading) -> int:
    """Returns the number of the row at which another table begins; the end without one."""
    cells = _cells(rows, body[:_SOME], columns)
    figures = ([c for c, cell in enumerate(row) if is_figure(cell)] for row in cells)
    of_figures = next(filter(None, figures), None)
    if not of_figures:
        return body.stop
    first = columns[of_figures[0]]
    for n in body[1:-1]:
        cell = rows[n][first] if first < len(rows[n]) else ""
        if cell and cell[0] not in _FIGURES:  # most rows have a figure there
            if _is_header(rows, body, n, columns, above, of_figures):
                while n - 1 > body.start and _count(rows[n - 1]) == 1:
                    n -= 1  # a title
                return n
    return body.stop


def _is_header(
    rows: Rows, body: range, n: int, columns: range, above: Heading, of_figures: Sequence[int]
) -> bool:
    """Returns whether a row among figures names the columns below it.

    It has words only, in upper or lower case as the names above, and figures below. One word in the
    only column of figures is enough in a small table, if it is not repeated.
    """
    row, below = _cells(rows, (n, n + 1), columns)
    words = [cell for cell in row if cell]
    cases = {name[:1].isupper() for name in above.names if name}
    if len(words) <= 1 or not all(map(_is_word, words)):
        return False
    if len(cases) == 1 and {word[:1].isupper() for word in words} != cases:
        return False
    if not any(word and is_figure(cell) for word, cell in zip(row, below, strict=True)):
        return False
    if len(of_figures) > 1:
        return all(row[c] for c in of_figures)
    words = [cells[of_figures[0]] for cells in _cells(rows, body[: _SHORT + 1], columns)]
    word = row[of_figures[0]]
    return len(words) <= _SHORT and words.count(word) == 1 and not _STATE.fullmatch(word)


def _notes(rows: Rows, body: range, columns: range) -> int:
    """Returns the number of the first row of notes below a table; the end without notes.

    Notes are alone in the first column, and longer than its other cells or marked.
    """
    first = body.stop
    while first - 1 > body.start and _count(rows[first - 1][columns.start : columns.stop]) == 1:
        first -= 1
    texts = [*chain(*_cells(rows, range(first, body.stop), columns[:1]))]
    if texts:
        longest = max(map(len, chain(*_cells(rows, range(body.start, first), columns[:1]))))
        if not all(_NOTE.match(t) or (" " in t and len(t) > longest) for t in texts):
            return body.stop
    return first
