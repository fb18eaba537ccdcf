"""Drawn lines of a page: lines between cells, and the grids that are tables."""

import ctypes
from bisect import bisect, bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from leporello.loaders.pdf.characters import Floats, Pointer, function

SAME = 3.0  # points: lines at smaller distances, and the edges of a thick line, are one line
_TOUCHING = 2.0  # points between lines that meet
_SHORTEST = 5.0  # points
_ON_LINE = 0.6  # points: reach of a line between cells
_FEWEST = 4  # columns and rows of a table, together
_MOST_PATHS, _MOST_SEGMENTS = 4000, 400  # more are a drawing

# Place of a line across its direction, beginning and end, in points.
Line = tuple[float, float, float]
# Left, upper, right and lower edge of a rectangle, in points downwards.
Box = tuple[float, float, float, float]


def boxes(paths: Sequence[Pointer]) -> list[Box]:
    """Returns the boxes of drawn lines, and of the straight edges of stroked shapes."""
    if len(paths) > _MOST_PATHS:
        return []
    bounds_of, mode_of = function("FPDFPageObj_GetBounds"), function("FPDFPath_GetDrawMode")
    sides, mode, stroke = Floats(4), ctypes.c_int(), ctypes.c_int()
    modes = ctypes.byref(mode), ctypes.byref(stroke)
    boxes: list[Box] = []
    for path in paths:
        bounds_of(path, *sides.pointers)
        west, south, east, north = sides.values[:]
        if east - west <= SAME or north - south <= SAME:
            boxes.append((west, -north, east, -south))
        elif mode_of(path, *modes) and stroke.value:
            boxes += _frame(path)
    return boxes


def _frame(path: Pointer) -> Iterator[Box]:
    """Yields the straight edges of a stroked shape."""
    from pypdfium2 import raw

    count = function("FPDFPath_CountSegments")(path)
    if count > _MOST_SEGMENTS:
        return
    matrix, place = Floats(6), Floats(2)
    function("FPDFPageObj_GetMatrix")(path, matrix.values)
    a, b, c, d, e, f = matrix.values
    segment_of, point_of = function("FPDFPath_GetPathSegment"), function("FPDFPathSegment_GetPoint")
    kind_of, closes = function("FPDFPathSegment_GetType"), function("FPDFPathSegment_GetClose")
    start = last = (0.0, 0.0)
    for i in range(count):
        segment = segment_of(path, i)
        kind = kind_of(segment)
        point_of(segment, *place.pointers)
        x, y = place.values
        point = a * x + c * y + e, -b * x - d * y - f
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield _between(last, point)
        last = point
        if closes(segment):
            yield _between(last, start)
            last = start


def _between(a: tuple[float, float], b: tuple[float, float]) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])


@dataclass
class Grid:
    """Lines that meet, in order. Its outer edges may have no line."""

    upright: list[Line] = field(default_factory=list)
    level: list[Line] = field(default_factory=list)

    @cached_property
    def box(self) -> Box:
        """Its bounds."""
        west, east = _ends(self.level, self.upright)
        north, south = _ends(self.upright, self.level)
        return west, north, east, south

    @cached_property
    def edges(self) -> tuple[list[float], list[float]]:
        """Edges of columns, and of rows."""
        west, north, east, south = self.box
        return _edges(self.upright, west, east), _edges(self.level, north, south)

    def area(self) -> float:
        """Returns its area in square points."""
        west, north, east, south = self.box
        return (east - west) * (south - north)


def grids(boxes: Sequence[Box]) -> list[Grid]:
    """Returns the tables among drawn lines."""
    upright, level = list[Line](), list[Line]()
    for west, north, east, south in boxes:
        width, height = east - west, south - north
        if width <= SAME < height:
            upright.append(((west + east) / 2, north, south))
        elif height <= SAME < width:
            level.append(((north + south) / 2, west, east))
    if not upright or not level:
        return []
    grids = _connected([*_merged(upright)], [*_merged(level)])
    return [grid for grid in grids if is_table(*(len(edges) - 1 for edges in grid.edges))]


def is_table(columns: int, rows: int) -> bool:
    """Returns whether there are two columns and two rows, or three columns."""
    return columns > 1 and columns + rows >= _FEWEST


def _merged(lines: Iterable[Line]) -> Iterator[Line]:
    """Yields long lines, which may be drawn in several parts, in the order of their places."""
    groups: list[list[Line]] = []
    for line in sorted(lines):
        if groups and line[0] - groups[-1][0][0] <= SAME:
            groups[-1].append(line)
        else:
            groups.append([line])
    for group in groups:
        at = group[len(group) // 2][0]
        (begin, end), *later = sorted(line[1:] for line in group)
        for low, high in [*later, (float("inf"), float("inf"))]:
            if low > end + _TOUCHING:
                if end - begin > _SHORTEST:
                    yield at, begin, end
                begin = low
            end = max(end, high)


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
    grids: dict[int, Grid] = {}
    for i, line in enumerate(upright):
        grids.setdefault(first(i), Grid()).upright.append(line)
    for j, line in enumerate(level):
        if owner[j] >= 0:
            grids[first(owner[j])].level.append(line)
    return [*grids.values()]


def _ends(lines: Sequence[Line], across: Sequence[Line]) -> tuple[float, float]:
    """Returns the beginning and end of lines and of those across them."""
    places = [line[0] for line in (*across[:1], *across[-1:])]
    low = min([*places, *(line[1] for line in lines)])
    return low, max([*places, *(line[2] for line in lines)])


def _edges(lines: Sequence[Line], low: float, high: float) -> list[float]:
    places: list[float] = []
    for at in [low, *(line[0] for line in lines), high]:
        if not places or at - places[-1] > SAME:
            places.append(at)
    return places


class Walls:
    """Upright lines between cells."""

    def __init__(self, grids: Iterable[Grid]) -> None:
        self._lines = sorted(line for grid in grids for line in grid.upright)
        self._places = [line[0] for line in self._lines]

    def part(self, x0: float, x1: float, y: float) -> bool:
        """Returns whether a line is between two places of a line of text with a baseline."""
        first = bisect(self._places, x0 - _ON_LINE)
        near = self._lines[first : bisect_left(self._places, x1 + _ON_LINE)]
        return any(top < y - 1.0 < bottom for _, top, bottom in near)
