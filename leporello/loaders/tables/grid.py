"""Tables with merged cells as rows of fields, so that each cell is in its column.

A cell that covers several fields is repeated in each of them; an empty cell is an empty field. The
header rows of a table become one row, in which each field joins the names of its column.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import TypeAlias, cast

_MOST_COLUMNS = 1000  # that a cell may cover, as in browsers
_MOST_HEADERS = 4  # rows of names; a table of more has texts in them
_LONG = 200  # characters of a cell that is not repeated
_MOST_FIELDS, _FREE = 16, 10_000  # times that spans may multiply a table's fields beyond 10,000


@dataclass(slots=True)
class GridCell:
    """A cell of a table."""

    text: str = ""  # text without line breaks
    columns: int = 1  # number of columns that it covers
    rows: int = 1  # number of rows that it covers; 0 if it continues the cell above


# Cells that begin in a row, from left to right; only the text of those that cover one field.
Row: TypeAlias = Sequence[str | GridCell]


def fields(rows: Sequence[Row], headers: int = 0) -> Iterator[tuple[int, Sequence[str]]]:
    """Yields the fields of each row that has text, with the index of the row.

    A row that is one cell over all columns has one field. The first `headers` rows, marked as names
    of columns, are joined. `rows` have no cells of earlier rows that cover them.
    """
    has_spans = GridCell in {*map(type, chain.from_iterable(rows))}
    texts_of: Iterable[Sequence[str]]
    if has_spans:
        rows = grid = _continued(rows)
        texts_of = _texts(grid)
    else:
        texts_of = cast("Sequence[Sequence[str]]", rows)
    top = _header(rows, headers)
    header: list[Sequence[str]] = []
    for number, texts in enumerate(texts_of):
        if number < top and len(texts) > 1:
            header.append(texts)
        elif any(texts) and not (has_spans and not rows[number]):
            yield number, texts
        if number == top - 1 and header:
            columns = zip_longest(*header, fillvalue="")
            yield number, [" ".join(dict.fromkeys(filter(None, names))) for names in columns]


def _continued(rows: Sequence[Row]) -> list[list[GridCell]]:
    """Returns rows in which cells cover the rows of those that continue them."""
    above: dict[int, GridCell] = {}
    continued = []
    for row in rows:
        column, cells, here = 0, list[GridCell](), dict[int, GridCell]()
        for source in row:
            cell = source if isinstance(source, GridCell) else GridCell(source)
            if cell.rows == 0 and column in above:
                above[column].rows += 1
                here[column] = above[column]
            else:
                cell.rows = cell.rows or 1
                here[column] = cell
                cells.append(cell)
            column += cell.columns
        continued.append(cells)
        above = here
    return continued


def _texts(grid: Sequence[Sequence[GridCell]]) -> Iterator[list[str]]:
    table = _placed(grid)
    width = max(map(len, table), default=0)
    written: set[int] = set()
    for cells in table:
        is_wide = len(cells) == width > 1 and all(cell is cells[0] for cell in cells)
        texts = []
        for cell in cells[:1] if is_wide else cells:
            text = cell.text if cell else ""
            texts.append("" if id(cell) in written and len(text) > _LONG else text)
            written.add(id(cell))
        yield texts


def _placed(rows: Sequence[Sequence[GridCell]]) -> list[list[GridCell | None]]:
    """Returns the cell of each field by row and column, without columns in which no cell begins."""
    cells = [cell for row in rows for cell in row]
    area = sum(_columns(cell) * min(cell.rows, len(rows)) for cell in cells)
    if area == len(cells) or area > _MOST_FIELDS * len(cells) + _FREE:
        return [[*row] for row in rows]
    table: list[dict[int, GridCell]] = []
    below: dict[int, GridCell] = {}  # cells of earlier rows, by column
    last: dict[int, int] = {}  # the last row of these cells, by column
    begun: set[int] = set()  # columns in which a cell begins
    for number, row in enumerate(rows):
        line = {column: cell for column, cell in below.items() if last[column] >= number}
        column = 0
        for cell in row:
            while column in line:
                column += 1
            begun.add(column)
            for covered in range(column, column + _columns(cell)):
                line[covered] = cell
                last[covered] = number + cell.rows - 1
        below = line
        table.append(line)
    columns = sorted(begun)
    return [[line.get(c) for c in columns if c <= max(line, default=-1)] for line in table]


def _columns(cell: GridCell) -> int:
    return min(cell.columns, _MOST_COLUMNS)


def _header(rows: Sequence[Row], marked: int) -> int:
    """Returns the number of header rows: those marked, or those that merged names cover.

    Without marks, merged names are a first row of which each cell is empty, covers the row below,
    or is above several columns.
    """
    for number, row in enumerate(rows[1:marked], 1):  # a name of rows reaches below the header
        if any(isinstance(cell, GridCell) and number + cell.rows > marked for cell in row):
            marked = number
            break
    first = [c if isinstance(c, GridCell) else GridCell(c) for c in (rows[0] if rows else ())]
    groups = any(cell.columns > 1 for cell in first) and len(first) > 1
    merged = groups and all(c.columns > 1 or c.rows > 1 or not c.text for c in first)
    top = max(marked, max(2, *(cell.rows for cell in first)) if merged else 0)
    return top if top <= _MOST_HEADERS and top < len(rows) else 0
