"""A table while `Flow` writes it, and the rows that replace its pieces at its end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from leporello.loaders.numbering import whole
from leporello.loaders.tables.grid import Cell, Row, fields

_LONG = 1000  # characters of a cell with several blocks, in a table that lays out a page


class OpenTable:
    """Rows and cells of a table, by the pieces of a flow.

    Attributes:
        first: Number of pieces before the table.
        rows: Rows so far.
        is_layout: Whether the table is marked as one that only lays out a page.
        has_tables: Whether a table is inside it.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        self.rows: list[Row] = []
        self.is_layout = False
        self.has_tables = False
        self._in_head = False
        self._row: Row | None = None  # that is open
        self._cell: Cell | None = None
        self._names = 0  # cells of the row that name a column or row

    def start_rows(self, tag: str, at: int) -> None:
        """Begins a row, or a group of rows, at a piece."""
        self._end_row(at)
        self._in_head = tag == "thead" or (self._in_head and tag == "tr")
        if tag == "tr":
            self._row = Row([], self._in_head)
            self.rows.append(self._row)

    def end_rows(self, tag: str, at: int) -> None:
        """Ends a row, a group of rows or the table."""
        self._end_row(at)
        self._in_head = self._in_head and tag == "tr"

    def start_cell(self, tag: str, attributes: Mapping[str, str], at: int) -> None:
        """Begins a cell at a piece; the next cell, or its row's end, ends it."""
        if self._cell is not None:
            self._cell.end = at
        if self._row is None:
            self.start_rows("tr", at)
            assert self._row is not None
        self._cell = Cell("", 1, 1, at, at)
        if "colspan" in attributes or "rowspan" in attributes:
            self._cell.columns = max(whole(attributes.get("colspan"), 1), 1)
            self._cell.rows = max(whole(attributes.get("rowspan"), 1), 1)
        if tag == "th":
            self._names += 1
        self._row.cells.append(self._cell)

    def lines(
        self, pieces: Sequence[str], headings: Iterable[tuple[int, str]]
    ) -> list[tuple[int, str]] | None:
        """Returns the rows as lines, with the index of the piece at which each begins.

        Args:
            pieces: Pieces of the flow, in which separators and texts alternate.
            headings: Headings in the table: indices of their pieces, and their titles.

        Returns:
            None if the table lays out a page, so that its pieces stay as they are.
        """
        if self._lays_out(pieces, headings):
            return None
        for row in self.rows:
            for cell in row.cells:
                if cell.end > cell.start:
                    cell.text = _text(pieces, cell, rows_apart=self.has_tables)
        rows = ((self.rows[n].cells[0].start, texts) for n, texts in fields(self.rows))
        written = [(start, "\t".join(texts)) for start, texts in rows]
        return sorted([*written, *self._outside(pieces)], key=lambda line: line[0])

    def _end_row(self, at: int) -> None:
        if self._cell is not None:
            self._cell.end, self._cell = at, None
        if self._row is not None and self._names:
            cells = self._row.cells
            is_wide = len(cells) > 1 or cells[0].columns > 1
            self._row.is_header |= is_wide and self._names == len(cells)
            self._names = 0
        self._row = None

    def _outside(self, pieces: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yields texts outside of cells, such as a caption."""
        at = self.first
        ends = ((cell.start, cell.end) for row in self.rows for cell in row.cells)
        for start, end in (*ends, (len(pieces), len(pieces))):
            if at < start and (text := "".join(pieces[at + 1 : start]).strip()):
                yield at, text
            at = max(at, end)

    def _lays_out(self, pieces: Sequence[str], headings: Iterable[tuple[int, str]]) -> bool:
        """Returns whether the table has one column, or a page's text rather than values.

        Only the beginnings of cells are read, since tables may be deep inside each other.
        """
        if self.is_layout or (self.has_tables and len(self.rows) == 1) or self._is_column(pieces):
            return True
        cells = [cell for row in self.rows for cell in row.cells]
        for at, title in headings:
            cell = cells[max(bisect_right(cells, at, key=attrgetter("start")) - 1, 0)]
            if at < cell.end and not (
                cell.end - cell.start < _LONG
                and _text(pieces, cell, rows_apart=self.has_tables) == title
            ):
                return True
        return any(cell.end > cell.start + 2 and _is_page(pieces, cell) for cell in cells)

    def _is_column(self, pieces: Sequence[str]) -> bool:
        """Returns whether fewer than two columns have text."""
        columns: set[int] = set()
        for row in self.rows:
            for number, cell in enumerate(row.cells):
                if any(map(str.strip, pieces[cell.start + 1 : cell.end : 2])):
                    columns.add(number)
            if len(columns) > 1:
                return False
        return True


def _is_page(pieces: Sequence[str], cell: Cell) -> bool:
    """Returns whether a cell has several blocks and is long."""
    size = 0
    has_blocks = False
    for number in range(cell.start + 2, cell.end, 2):
        has_blocks = has_blocks or "\n" in pieces[number]
        size += len(pieces[number - 1])
        if has_blocks and size > _LONG:
            return True
    return has_blocks and size + len(pieces[cell.end - 1]) > _LONG


def _text(pieces: Sequence[str], cell: Cell, *, rows_apart: bool) -> str:
    if cell.end == cell.start + 2:
        text = pieces[cell.start + 1]
    else:
        text = "".join(pieces[cell.start + 1 : cell.end])
    text = text.strip()
    if "\n" in text or "\t" in text:
        rows = re.sub(r"\n+", "; ", text) if rows_apart else text  # of a table in the cell
        text = " ".join(rows.split())
    return text
