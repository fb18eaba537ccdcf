"""Tables whose cells are drawn with lines: each text gets the row and column of its cell."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from leporello.loaders.pdf.cells import APART, FIGURES, Row, TableLine, grouped, joined, reads_backwards, written
from leporello.loaders.pdf.words import Fragment

_SAME = 3.0  # points: lines at smaller distances are one line
_TOUCHING = 2.0  # points between lines that meet
_SHORTEST = 5.0  # points
_MOST = 4000  # lines of a page; more are a drawing
_LONGEST, _LONG = 15, 0.4  # lines of a row; share of the lines in longer rows of a page's layout
_CROSSING = 0.1  # of the texts: more that cross lines are a drawing
_DOUBTFUL = 0.25  # of the lines: more that may be rows or columns without drawn lines
_MIDDLE = 0.3  # of the type's size: from the baseline upwards

# Place of a line across its direction, beginning and end, in points.
Line = tuple[float, float, float]
# Left, upper, right and lower edge of a rectangle, in points downwards.
Box = tuple[float, float, float, float]


@dataclass(slots=True)
class RuledRow(Fragment):
    """Row of a table, as one fragment."""

    opens: bool = False  # whether it is the first row of its table
    cells: int = 1  # number of filled cells


@dataclass(slots=True)
class Grid:
    """Lines around the cells of a table."""

    upright: list[Line] = field(default_factory=list)
    level: list[Line] = field(default_factory=list)

    @property
    def box(self) -> Box:
        """Its bounds."""
        west, east = _bounds(self.level, self.upright)
        north, south = _bounds(self.upright, self.level)
        return west, north, east, south

    def area(self) -> float:
        """Returns its area in square points."""
        west, north, east, south = self.box
        return (east - west) * (south - north)

    @property
    def is_table(self) -> bool:
        """Whether there are two columns and two rows."""
        west, north, east, south = self.box
        columns, rows = _edges(self.upright, west, east), _edges(self.level, north, south)
        return (len(columns) > 2 and len(rows) > 2) or (len(columns) > 3 and len(rows) > 1)


def grids(boxes: Sequence[Box]) -> list[Grid]:
    """Returns the tables among drawn lines and frames."""
    if len(boxes) > _MOST:
        return []
    upright, level = list[Line](), list[Line]()
    for west, north, east, south in boxes:
        width, height = east - west, south - north
        if width <= _SAME < height:
            upright.append(((west + east) / 2, north, south))
        elif height <= _SAME < width:
            level.append(((north + south) / 2, west, east))
    if len(upright) < 1 or len(level) < 2:
        return []
    found = _connected([*_merged(upright)], [*_merged(level)])
    return [grid for grid in found if grid.is_table]


def _merged(lines: Iterable[Line]) -> Iterator[Line]:
    """Yields long lines, which may be drawn in several parts."""
    groups: list[list[Line]] = []
    for line in sorted(lines):
        if groups and line[0] - groups[-1][0][0] <= _SAME:
            groups[-1].append(line)
        else:
            groups.append([line])
    for group in groups:
        at = median(line[0] for line in group)
        begin, end = group[0][1], float("-inf")
        for low, high in sorted(line[1:] for line in group):
            if end > float("-inf") and low > end + _TOUCHING:
                if end - begin > _SHORTEST:
                    yield at, begin, end
                begin, end = low, high
            elif end == float("-inf"):
                begin, end = low, high
            end = max(end, high)
        if end - begin > _SHORTEST:
            yield at, begin, end


def _connected(upright: Sequence[Line], level: Sequence[Line]) -> list[Grid]:
    """Returns the lines that meet each other, directly or by others."""
    heights = [line[0] for line in level]
    group = [*range(len(upright))]  # index of another upright line of the same grid
    owner = [-1] * len(level)  # the same of level lines

    def first(i: int) -> int:
        while group[i] != i:
            i = group[i] = group[group[i]]
        return i

    for i, (x, north, south) in enumerate(upright):
        near = bisect_left(heights, north - _TOUCHING), bisect(heights, south + _TOUCHING)
        for j in range(*near):
            if level[j][1] - _TOUCHING <= x <= level[j][2] + _TOUCHING:
                if owner[j] < 0:
                    owner[j] = i
                group[first(i)] = first(owner[j])
    found: dict[int, Grid] = {}
    for i, line in enumerate(upright):
        found.setdefault(first(i), Grid()).upright.append(line)
    for j, line in enumerate(level):
        if owner[j] >= 0:
            found[first(owner[j])].level.append(line)
    return [*found.values()]


def _bounds(lines: Sequence[Line], across: Sequence[Line]) -> tuple[float, float]:
    """Returns the beginning and end of lines and of those across them."""
    places = [line[0] for line in across]
    low = min([*places, *(line[1] for line in lines)])
    return low, max([*places, *(line[2] for line in lines)])


def _edges(lines: Sequence[Line], low: float, high: float) -> list[float]:
    """Returns the edges of columns or rows; the outer ones may lack a line."""
    places: list[float] = []
    for at in sorted([low, *(line[0] for line in lines), high]):
        if not places or at - places[-1] > _SAME:
            places.append(at)
    return places


def with_rows(
    fragments: Sequence[tuple[Fragment, int]], main: int, tables: Sequence[Grid]
) -> list[tuple[Fragment, int]]:
    """Replaces the fragments in tables by rows."""
    if not tables:
        return [*fragments]
    rest = [f for f, turn in fragments if turn == main]
    others = [(f, turn) for f, turn in fragments if turn != main]
    found: list[Fragment] = []
    for grid in sorted(tables, key=Grid.area, reverse=True):
        table, rest = rows(rest, grid)
        found += table
    return [*((f, main) for f in [*rest, *found]), *others]


def rows(fragments: Sequence[Fragment], grid: Grid) -> tuple[list[RuledRow], list[Fragment]]:
    """Returns the rows of a table, and the fragments outside; no rows if it is not a table."""
    west, north, east, south = grid.box
    inside, outside = list[Fragment](), list[Fragment]()
    for f in fragments:
        x, y = (f.x0 + f.x1) / 2, f.y - _MIDDLE * f.size
        (inside if west < x < east and north < y < south else outside).append(f)
    columns, heights = _edges(grid.upright, west, east), _edges(grid.level, north, south)
    cells: dict[tuple[int, int], list[Fragment]] = {}
    last: dict[int, int] = {}
    crossing = 0
    for f in inside:
        x, y = (f.x0 + f.x1) / 2, f.y - _MIDDLE * f.size
        low, high = _around(grid.upright, x, y, (west, east))
        crossing += f.x0 < low - f.size / 2 or f.x1 > high + f.size / 2
        top, _ = _around(grid.level, y, x, (north, south))
        column, row = bisect(columns, low + _SAME) - 1, bisect(heights, top + _SAME) - 1
        cells.setdefault((row, column), []).append(f)
        last[id(f)] = bisect(columns, high - _SAME) - 1
    cells = _divided(cells, columns, heights)
    lettered = [f for f in inside if not FIGURES.fullmatch(f.text)]
    is_backwards = bool(lettered) and reads_backwards(lettered)
    used = sorted({column for _, column in cells}, reverse=is_backwards)
    widths = [columns[c + 1] - columns[c] for c in used]
    if len(used) < 2 or crossing > _CROSSING * len(inside):
        return [], [*fragments]
    bands = sorted({row for row, _ in cells})
    if len(bands) + len(used) < 4:
        return [], [*fragments]
    result: list[RuledRow] = []
    doubtful = total = wide = long = 0
    for band in bands:
        here = {used.index(c): of for (r, c), of in cells.items() if r == band}
        lines = [*_lines(here)]
        long += len(lines) if len(lines) > _LONGEST else 0
        whole = len(here) == 1 and all(
            last[id(f)] >= max(used) for of in here.values() for f in of
        ) and used.index(min(used)) in here
        is_row = whole or _is_row(lines, widths)
        total += len(lines)
        doubtful += 0 if is_row else len(lines)
        wide += sum(_is_wide(line, here) for line in lines)
        groups = [[line] for line in lines] if whole else _parts(lines) if is_row else grouped(lines)
        for row in written(groups, len(used)):
            crosses = whole and any(f.x1 > columns[1] for f in row.fragments)
            text = row.text.strip("\t") if crosses else row.text
            result.append(_as_fragment(text, row.fragments, row.top, not result, len(here)))
    if max(doubtful, wide) > _DOUBTFUL * total or long > _LONG * total:
        return [], [*fragments]
    return result, outside


def _is_wide(line: TableLine, cells: dict[int, list[Fragment]]) -> bool:
    """Returns whether a cell has a gap as between columns."""
    columns = {id(f): column for column, of in cells.items() for f in of}
    return any(
        columns[id(a)] == columns[id(b)] and b.x0 - a.x1 > 0.8 * a.size
        for a, b in pairwise(line.row)
    )


def _divided(
    cells: dict[tuple[int, int], list[Fragment]], columns: list[float], heights: list[float]
) -> dict[tuple[int, int], list[Fragment]]:
    """Divides large cells where texts are in the columns or rows of other cells."""
    divided: dict[tuple[int, int], list[Fragment]] = {}
    for (row, column), of in cells.items():
        for f in of:
            place = row, column
            if len(of) > 1:
                if _has_gap(of):
                    place = place[0], bisect(columns, f.x0) - 1
                if _has_rows(of, heights):
                    place = bisect(heights, f.y - _MIDDLE * f.size) - 1, place[1]
            divided.setdefault(place, []).append(f)
    return divided


def _has_gap(fragments: Sequence[Fragment]) -> bool:
    """Returns whether texts beside each other have a gap as between columns."""
    down = sorted(fragments, key=lambda f: (f.y, f.x0))
    return any(abs(b.y - a.y) < 1.0 and b.x0 - a.x1 > 0.8 * a.size for a, b in pairwise(down))


def _has_rows(fragments: Sequence[Fragment], heights: Sequence[float]) -> bool:
    """Returns whether each text is in another row."""
    rows = {bisect(heights, f.y - _MIDDLE * f.size) for f in fragments}
    return len(rows) == len(fragments) > 2


def _around(lines: Sequence[Line], at: float, across: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Returns the next lines before and after a place, among those that reach it."""
    low, high = ends
    for place, begin, end in lines:
        if begin - 1.0 <= across <= end + 1.0:
            if place <= at:
                low = max(low, place)
            else:
                high = min(high, place)
    return low, high


def _lines(cells: dict[int, list[Fragment]]) -> Iterator[TableLine]:
    """Yields the lines of the cells of a row, downwards."""
    placed = sorted(((f.y, f.x0, c, f) for c, of in cells.items() for f in of), key=lambda p: p[:3])
    line: list[tuple[int, Fragment]] = []
    y = 0.0
    for _, _, column, f in placed:
        if line and f.y - y >= 0.45 * max(f.size, line[-1][1].size):
            yield _line(line)
            line = []
        if not line:
            y = f.y
        line.append((column, f))
    if line:
        yield _line(line)


def _line(line: Sequence[tuple[int, Fragment]]) -> TableLine:
    cells: dict[int, Row] = {}
    for column, f in sorted(line, key=lambda p: p[1].x0):
        cells.setdefault(column, []).append(f)
    for of in cells.values():
        if len(of) > 1 and reads_backwards(of):
            of.reverse()
    texts = {column: joined(of) for column, of in cells.items()}
    return TableLine(texts, [f for of in cells.values() for f in of], False, line[0][1].y)


def _is_row(lines: Sequence[TableLine], widths: Sequence[float]) -> bool:
    """Returns whether the lines between two drawn lines are one row."""
    if len(lines) == 1:
        return True
    columns: dict[int, list[str]] = {}
    for line in lines:
        for column, text in line.cells.items():
            columns.setdefault(column, []).append(text)
    several = [texts for texts in columns.values() if len(texts) > 1]
    is_complete = all(len(line.cells) == len(columns) > 1 for line in lines)
    if is_complete and _fit(lines, widths):
        return False
    return not any(
        2 * sum(FIGURES.fullmatch(text) is not None for text in texts) >= len(texts)
        for texts in several
    )


def _fit(lines: Sequence[TableLine], widths: Sequence[float]) -> bool:
    """Returns whether lines are rows: in no cell, the width requires another line."""
    for above, below in pairwise(lines):
        if not len(above.row) == len(below.row) == len(above.cells):
            return False
        across = [widths[column] for column in above.cells]
        for width, a, b in zip(across, above.row, below.row, strict=True):
            word = b.text.partition(" ")[0]
            share = (len(word) + 1) / len(b.text)
            if (a.x1 - a.x0) + share * (b.x1 - b.x0) > width - a.size / 2:
                return False
    return True


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


def _as_fragment(
    text: str, fragments: Row, top: float, opens: bool, cells: int
) -> RuledRow:
    size = max(fragments, key=lambda f: len(f.text)).size
    return RuledRow(
        text, min(f.x0 for f in fragments), max(f.x1 for f in fragments), top, size,
        all(f.bold for f in fragments), min(f.order for f in fragments), opens=opens, cells=cells,
    )  # fmt: skip
