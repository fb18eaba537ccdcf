"""A table while `Flow` writes it, and the rows that replace its pieces at its end."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from leporello.loaders.numbering import whole
from leporello.loaders.tables.grid import GridCell, Row, fields

_TO_THE_END = 65_534  # rows of a cell with `rowspan=0`, as in browsers
_LONG = 2000  # characters of a cell with several blocks, in a table that lays out a page


@dataclass(slots=True)
class _OpenRow:
    """A row, by the pieces of a flow."""

    starts: list[int]  # number of pieces before each cell, which ends where the next cell begins
    end: int  # number of pieces at the end of the row
    is_header: bool  # whether the row names columns
    is_plain: bool = False  # whether each cell is one piece, as in most tables

    def cells(self) -> Iterator[tuple[int, int]]:
        """Yields the number of pieces before and at the end of each cell."""
        return zip(self.starts, (*self.starts[1:], self.end), strict=True)


class OpenTable:
    """Rows and cells of a table, by the pieces of a flow."""

    def __init__(self, first: int) -> None:
        self.first = first  # number of pieces before the table
        self.is_layout = False  # whether it is marked as one that only lays out a page
        self.has_tables = False  # whether a table is inside it
        self._rows: list[_OpenRow] = []
        # Columns and rows of cells that cover several, by the indices of row and cell
        self._spans: dict[tuple[int, int], tuple[int, int]] = {}
        self._in_head = False
        self._row: _OpenRow | None = None  # that is open
        self._names = 0  # cells of the row that name a column or row

    def start_rows(self, tag: str, at: int) -> None:
        """Starts a row, or a group of rows, at a piece."""
        self._end_row(at)
        self._in_head = tag == "thead" or (self._in_head and tag == "tr")
        if tag == "tr":
            self._row = _OpenRow([], at, self._in_head)
            self._rows.append(self._row)

    def end_rows(self, tag: str, at: int) -> None:
        """Ends a row, a group of rows or the table."""
        self._end_row(at)
        self._in_head = self._in_head and tag == "tr"

    def end_head(self) -> None:
        """Lets the rows above the open row name columns, if no row is marked as such."""
        if self._rows and not self._rows[0].is_header:
            for row in self._rows[:-1]:
                row.is_header = True

    def start_cell(self, tag: str, attributes: Mapping[str, str], at: int) -> None:
        """Starts a cell at a piece; the next cell, or its row's end, ends it."""
        if self._row is None:
            self.start_rows("tr", at)
            assert self._row is not None
        if tag == "th":
            self._names += 1
        self._row.starts.append(at)
        if attributes:
            columns, rows = (whole(attributes.get(name), 1) for name in ("colspan", "rowspan"))
            self.span(columns, 0 if "continues" in attributes else rows or _TO_THE_END)

    def span(self, columns: int, rows: int) -> None:
        """Lets the last cell of the open row cover several columns or rows; 0 as in `GridCell`."""
        if self._row and self._row.starts and (columns > 1 or rows != 1):
            cell = len(self._rows) - 1, len(self._row.starts) - 1
            self._spans[cell] = max(columns, 1), max(rows, 0)

    def lines(
        self, pieces: Sequence[str], headings: Iterable[tuple[int, str]]
    ) -> list[tuple[int, str]] | None:
        """Returns the rows as lines, with the index of the piece at which each begins.

        `headings` are those in the table, by the indices of their pieces. None if the table lays
        out a page, so that its pieces stay as they are.
        """
        if self._lays_out(pieces, headings):
            return None
        texts = [self._texts(row, pieces) for row in self._rows]
        rows: Sequence[Row] = texts
        if self._spans:
            rows = [
                [GridCell(text, *self._spans.get((n, c), ())) for c, text in enumerate(row)]
                for n, row in enumerate(texts)
            ]
        headers = next((n for n, row in enumerate(self._rows) if not row.is_header), 0)
        lines = [(self._rows[n].starts[0], "\t".join(row)) for n, row in fields(rows, headers)]
        return sorted([*lines, *self._outside(pieces)], key=itemgetter(0))

    def _texts(self, row: _OpenRow, pieces: Sequence[str]) -> Sequence[str]:
        if row.is_plain and row.starts:
            texts = pieces[row.starts[0] + 1 : row.end : 2]
            if "".join(texts).isprintable():
                return texts
        return [self._text(pieces, start, end) for start, end in row.cells()]

    def _end_row(self, at: int) -> None:
        if self._row is None:
            return
        self._row.end = at
        starts = self._row.starts
        self._row.is_plain = starts == [*range(at - 2 * len(starts), at, 2)]
        if self._names:
            is_wide = len(starts) > 1 or (len(self._rows) - 1, 0) in self._spans
            self._row.is_header |= is_wide and self._names == len(starts)
            self._names = 0
        self._row = None

    def _outside(self, pieces: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Yields texts outside of cells, such as a caption."""
        at = self.first
        ends = ((row.starts[0], row.end) for row in self._rows if row.starts)
        for start, end in (*ends, (len(pieces), len(pieces))):
            if at < start and (text := "".join(pieces[at + 1 : start]).strip()):
                yield at, text
            at = max(at, end)

    def _lays_out(self, pieces: Sequence[str], headings: Iterable[tuple[int, str]]) -> bool:
        """Returns whether the table has one column, or a page's text rather than values.

        Only the beginnings of cells are read, since tables may be deep inside each other.
        """
        if self.is_layout or (self.has_tables and len(self._rows) == 1) or self._is_column(pieces):
            return True
        bounds: list[int] = []
        for at, title in headings:
            bounds = bounds or [b for row in self._rows for b in (*row.starts, row.end)]
            number = bisect_right(bounds, at)
            start, end = bounds[number - 1], bounds[min(number, len(bounds) - 1)]
            if start <= at < end and (
                end - start > _LONG or self._text(pieces, start, end) != title
            ):
                return True
        return not any(row.is_header for row in self._rows) and any(
            end > start + 2 and _is_page(pieces, start, end)
            for row in self._rows
            for start, end in (() if row.is_plain else row.cells())
        )

    def _is_column(self, pieces: Sequence[str]) -> bool:
        """Returns whether fewer than two columns have text."""
        columns: set[int] = set()
        for row in self._rows:
            for number, (start, end) in enumerate(row.cells()):
                if any(map(str.strip, pieces[start + 1 : end : 2])):
                    columns.add(number)
            if len(columns) > 1:
                return False
        return True

    def _text(self, pieces: Sequence[str], start: int, end: int) -> str:
        """Returns the text of a cell in one line."""
        if end <= start:
            return ""
        text = pieces[start + 1] if end == start + 2 else "".join(pieces[start + 1 : end])
        text = text.strip()
        if "\n" in text or "\t" in text:
            # Rows of a table in the cell are separated.
            rows = re.sub(r"\n+", "; ", text) if self.has_tables else text
            text = " ".join(rows.split())
        return text


def _is_page(pieces: Sequence[str], start: int, end: int) -> bool:
    """Returns whether a cell has several blocks and is long."""
    size = 0
    has_blocks = False
    for number in range(start + 2, end, 2):
        has_blocks = has_blocks or "\n" in pieces[number]
        size += len(pieces[number - 1])
        if has_blocks and size > _LONG:
            return True
    return has_blocks and size + len(pieces[end - 1]) > _LONG
