"""Tables whose cells are drawn with lines: each text gets the row and column of its cell."""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, pairwise
from typing import NamedTuple

from leporello.loaders.pdf.cells import (
    APART,
    FIGURES,
    TableLine,
    WrittenRow,
    columns_of,
    figures_in,
    grouped,
    reads_backwards,
    rows_of,
    table_line,
    written,
)
from leporello.loaders.pdf.drawn import SAME, Grid, Line, is_table
from leporello.loaders.pdf.fragments import Fragment

_LONGEST = 15  # lines of a row
_LONG = 0.4  # of the lines: more in longer rows are a page's layout
_CROSSING = 0.1  # of the texts: more that cross lines are a drawing
_DOUBTFUL = 0.25  # of the lines: more that may be rows without drawn lines
_MIDDLE = 0.3  # of the type's size: from the baseline upwards
_GAP = 0.8  # of the type's size: wider gaps in a cell may separate columns

# Texts by row and column.
_Cells = dict[tuple[int, int], list[Fragment]]


class _Band(NamedTuple):
    """Texts between two drawn lines."""

    groups: Sequence[Sequence[TableLine]]  # lines of each row
    doubtful: bool  # whether rows without drawn lines between them are likely


def with_rows(fragments: Sequence[Fragment], grids: Iterable[Grid]) -> list[Fragment]:
    """Replaces the fragments in tables by rows."""
    in_tables: list[Fragment] = []
    for grid in sorted(grids, key=Grid.area, reverse=True):
        table, fragments = rows(fragments, grid)
        in_tables += table
    return [*fragments, *in_tables]


def rows(fragments: Sequence[Fragment], grid: Grid) -> tuple[list[WrittenRow], list[Fragment]]:
    """Returns the rows of a table, and the fragments outside; no rows if it is not a table."""
    inside, outside = _sides(fragments, grid)
    columns, _ = grid.edges
    cells, ends, crossing = _cells(inside, grid)
    used = sorted({column for _, column in cells})
    count = len({row for row, _ in cells})
    if not is_table(len(used), count) or crossing > _CROSSING * len(inside):
        return [], [*fragments]
    lettered = [f for f in inside if not FIGURES.fullmatch(f.text)]
    order = used[::-1] if lettered and reads_backwards(lettered) else used
    by_row: dict[int, dict[int, list[Fragment]]] = {}
    for row, column in sorted(cells):
        by_row.setdefault(row, {})[order.index(column)] = cells[row, column]
    first = order.index(used[0])
    bands = [
        _band(here, first in here and all(ends[id(f)] >= used[-1] for f in here[first]), columns[1])
        for here in by_row.values()
    ]
    sizes = [sum(map(len, band.groups)) for band in bands]
    doubtful = sum(compress(sizes, (band.doubtful for band in bands)))
    long = sum(size for size in sizes if size > _LONGEST)
    if doubtful > _DOUBTFUL * sum(sizes) or long > _LONG * sum(sizes):
        return [], [*fragments]
    rewritten = [row for band in bands for row in written(band.groups, len(used))]
    rewritten[0].opens = True
    return rewritten, outside


def _sides(fragments: Sequence[Fragment], grid: Grid) -> tuple[list[Fragment], list[Fragment]]:
    """Returns the fragments inside and outside a grid."""
    west, north, east, south = grid.box
    inside, outside = list[Fragment](), list[Fragment]()
    for f in fragments:
        x, y = _middle(f)
        (inside if west < x < east and north < y < south else outside).append(f)
    return inside, outside


def _middle(fragment: Fragment) -> tuple[float, float]:
    return (fragment.x0 + fragment.x1) / 2, fragment.y - _MIDDLE * fragment.size


def _cells(fragments: Sequence[Fragment], grid: Grid) -> tuple[_Cells, dict[int, int], int]:
    """Returns the texts by cell, the last column of each text's cell, and how many cross lines."""
    west, north, east, south = grid.box
    columns, heights = grid.edges
    cells: _Cells = {}
    last: dict[int, int] = {}
    crossing = 0
    for f in fragments:
        x, y = _middle(f)
        low, high = _around(grid.upright, x, y, (west, east))
        crossing += f.x0 < low - f.size / 2 or f.x1 > high + f.size / 2
        top, _ = _around(grid.level, y, x, (north, south))
        place = bisect(heights, top + SAME) - 1, bisect(columns, low + SAME) - 1
        cells.setdefault(place, []).append(f)
        last[id(f)] = bisect(columns, high - SAME) - 1
    return _divided(cells, columns), last, crossing


def _around(
    lines: Iterable[Line], at: float, across: float, ends: tuple[float, float]
) -> tuple[float, float]:
    """Returns the next lines before and after a place, among those that reach it."""
    reaching = [place for place, low, high in lines if low - 1.0 <= across <= high + 1.0]
    places = [ends[0], *reaching, ends[1]]
    after = bisect(places, at, 1, len(places) - 1)
    return places[after - 1], places[after]


def _divided(cells: _Cells, columns: Sequence[float]) -> _Cells:
    """Divides large cells where texts beside each other are in the columns of other cells."""
    divided: _Cells = {}
    for (row, column), texts in cells.items():
        has_gap = _has_gap(texts)
        for f in texts:
            place = row, bisect(columns, f.x0) - 1 if has_gap else column
            divided.setdefault(place, []).append(f)
    return divided


def _has_gap(fragments: Sequence[Fragment]) -> bool:
    """Returns whether there is a wide gap in a line."""
    down = sorted(fragments, key=lambda f: (f.y, f.x0))
    return any(abs(b.y - a.y) < 1.0 and b.x0 - a.x1 > _GAP * a.size for a, b in pairwise(down))


def _band(cells: Mapping[int, list[Fragment]], reaches: bool, second: float) -> _Band:
    """Returns the rows between two drawn lines.

    The first cell reaches the last column or not; the second column begins at `second`.
    """
    column_of = {id(f): column for column, texts in cells.items() for f in texts}
    is_single = reaches and len(cells) == 1
    spans = is_single and any(f.x1 > second for texts in cells.values() for f in texts)
    lines = [
        table_line(row, [column_of[id(f)] for f in row], min(f.y for f in row), spans=spans)
        for row in rows_of(f for texts in cells.values() for f in texts)
    ]
    is_row = is_single or _is_row(lines)
    groups = (
        [[line] for line in lines] if is_single else _parts(lines) if is_row else grouped(lines)
    )
    return _Band(groups, not is_row)


def _is_row(lines: Sequence[TableLine]) -> bool:
    """Returns whether lines between two drawn lines are one row: no column has figures in them."""
    columns = columns_of(lines).values()
    return not any(2 * figures_in(texts) >= len(texts) > 1 for texts in columns)


def _parts(lines: Sequence[TableLine]) -> list[Sequence[TableLine]]:
    """Returns the rows between two drawn lines: larger distances separate them in all columns."""
    above: dict[int, float] = {}
    gaps: list[list[float]] = []  # by line: distances to the texts above, column by column
    for line in lines:
        gaps.append([line.y - above[column] for column in line.cells if column in above])
        above.update(dict.fromkeys(line.cells, line.y))
    least = APART * min((gap for of in gaps for gap in of), default=0.0)
    starts = [0]
    for i, (line, of) in enumerate(zip(lines, gaps, strict=True)):
        if i and 0 in line.cells and len(of) > 1 and all(gap > least for gap in of):
            starts.append(i)
    return [lines[a:b] for a, b in pairwise([*starts, len(lines)])]
