"""Puts fragments of a page in reading order: columns, rows, cells, paragraphs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median

from leporello.loaders.pdf.page import Fragment

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufefc]")
_CELL = 0.8  # of the type's size: a gap that parts cells, if the next row has one there too
_GUTTER = 0.5  # of the type's size: what parts columns is wider
_LEAST = 2  # rows of a column
_TRIED = 12  # places where columns may part
_COLUMNS = 6  # how often a page is parted again
_PITCH = 1.35  # of the usual distance of lines: a larger one parts paragraphs
_LOOSE = 2.0  # times the type's size: lines of a text are no further apart
_INDENT = 0.8  # of the type's size: by how much a paragraph's first line is set in
_ROWS = 3  # rows that make a table
_PROSE_WORDS, _PROSE_WIDTH = 5, 0.7  # words a line, and share of the column that lines fill


@dataclass(slots=True)
class PageLine:
    """A line of text.

    Attributes:
        text: Text, with tabs between table cells, and `HYPHEN` for a hyphen at the end.
        y: Baseline, in points below the page's upper edge.
        size: Size of most of the type, in points.
        bold: Whether all of the type is bold.
        opens: Whether a paragraph, column or table begins with the line.
    """

    text: str
    y: float
    size: float
    bold: bool
    opens: bool


Row = list[Fragment]


def lines(fragments: Sequence[Fragment]) -> list[PageLine]:
    """Returns a page's lines in reading order.

    Args:
        fragments: Fragments of one direction, in the file's order.
    """
    blocks = _blocks(list(fragments), _COLUMNS)
    return [line for block in blocks for line in _written(_rows(block))]


def _blocks(fragments: list[Fragment], depth: int) -> Iterator[list[Fragment]]:
    """Yields what is read line by line: the page, or what spans columns, and each column."""
    gutter = _gutter(fragments) if depth else None
    if gutter is None:
        yield fragments
        return
    plain: list[Fragment] = []
    for crosses, band in _bands(fragments, gutter):
        left = [f for f in band if f.x1 <= gutter]
        right = [f for f in band if f.x1 > gutter]
        if crosses or not _are_columns(left, right):
            plain += band
            continue
        if plain:
            yield from _blocks(plain, depth - 1)
        plain = []
        yield from _blocks(left, depth - 1)
        yield from _blocks(right, depth - 1)
    if plain:
        yield plain


def _bands(fragments: list[Fragment], gutter: float) -> Iterator[tuple[bool, list[Fragment]]]:
    """Yields what crosses the gutter, and what stands beside it, in turns downwards."""
    down = sorted(fragments, key=lambda f: f.y)
    for crosses, band in groupby(down, key=lambda f: f.x0 < gutter < f.x1):
        yield crosses, [*band]


def _gutter(fragments: Sequence[Fragment]) -> float | None:
    """Returns the place along the lines that parts most fragments and is crossed by few.

    Of the best such places, one that the file itself goes by comes first.
    """
    begins, ends = sorted(f.x0 for f in fragments), sorted(f.x1 for f in fragments)
    narrowest = _GUTTER * median(f.size for f in fragments) if fragments else 0.0
    found: dict[int, tuple[float, float]] = {}  # by what begins after it: how well it parts, place
    beginning = 0
    for ended, end in enumerate(ends, 1):
        while beginning < len(begins) and begins[beginning] < end:
            beginning += 1
        after = len(begins) - beginning
        if not after:
            break
        crossing, gap = len(begins) - ended - after, begins[beginning] - end
        if gap > narrowest and (score := min(ended, after) - crossing / 2) >= _LEAST:
            found[beginning] = (score, end + gap / 2)
    best = [place for _, place in sorted(found.values(), reverse=True)[:_TRIED]]
    for place in best:
        left = [f for f in fragments if f.x1 <= place]
        if _in_turn(left, [f for f in fragments if f.x0 >= place]):
            return place
    return best[0] if best else None


def _are_columns(left: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    """Returns whether two sides are read one after the other, and not as rows of a table.

    They are if the file has them so, or if both are prose.
    """
    if min(len(_rows(left)), len(_rows(right))) < _LEAST:
        return False
    return _in_turn(left, right) or (_is_prose(left) and _is_prose(right))


def _in_turn(left: Sequence[Fragment], right: Sequence[Fragment]) -> bool:
    """Returns whether the file has nearly all of one side before the other."""
    sides = [
        side for _, side in sorted([(f.order, 0) for f in left] + [(f.order, 1) for f in right])
    ]
    return sum(a != b for a, b in pairwise(sides)) <= 1 + len(sides) // 20


def _is_prose(side: Sequence[Fragment]) -> bool:
    width = max(f.x1 for f in side) - min(f.x0 for f in side)
    words = fmean(f.text.count(" ") + 1 for f in side)
    return words >= _PROSE_WORDS and median(f.x1 - f.x0 for f in side) >= _PROSE_WIDTH * width


def _rows(fragments: Iterable[Fragment]) -> list[Row]:
    """Returns fragments by lines downwards, each from its beginning to its end."""
    rows: list[Row] = []
    y = size = 0.0
    for fragment in sorted(fragments, key=lambda f: f.y):
        if rows and fragment.y - y < 0.45 * max(size, fragment.size):
            rows[-1].append(fragment)
            if fragment.size > size:  # what is small beside it stands above or below the line
                y, size = fragment.y, fragment.size
        else:
            rows.append([fragment])
            y, size = fragment.y, fragment.size
    for row in rows:
        backwards = sum(bool(_RIGHT_TO_LEFT.search(f.text)) for f in row) * 2 > len(row)
        row.sort(key=lambda f: -f.x1 if backwards else f.x0)
    return rows


def _written(rows: Sequence[Row]) -> Iterator[PageLine]:
    """Yields the lines of a block, tables and paragraphs told apart."""
    tables = _table_gaps(rows)
    pitches = [b[0].y - a[0].y for a, b in pairwise(rows)]
    pitch = median(pitches) if pitches else 0.0
    margin = min((row[0].x0 for row in rows), default=0.0)
    for i, row in enumerate(rows):
        set_in = math.inf if tables[i] else margin  # cells are not set in
        size = max(row, key=lambda f: len(f.text)).size
        text = row[0].text
        for a, b in pairwise(row):
            cell = any(a.x1 <= low and high <= b.x0 for low, high in tables[i])
            text += ("\t" if cell else " ") + b.text
        opens = i == 0 or _opens(rows, i, pitch, set_in) or bool(tables[i]) != bool(tables[i - 1])
        y = max(row, key=lambda f: f.size).y
        yield PageLine(text, y, size, all(f.bold for f in row), opens)


def _opens(rows: Sequence[Row], i: int, pitch: float, margin: float) -> bool:
    """Returns whether a row begins a paragraph: after a gap, in other type, or set in."""
    row, last = rows[i][0], rows[i - 1][0]
    usual = min(max(pitch, row.size), _LOOSE * row.size)
    if row.y - last.y > _PITCH * usual or abs(row.size - last.size) > 0.1 * row.size:
        return True
    following = rows[i + 1][0].x0 if i + 1 < len(rows) else margin
    flush = 0.3 * row.size
    return (
        row.x0 - margin > _INDENT * row.size
        and last.x0 - margin < flush
        and following - margin < flush
    )


Gap = tuple[float, float]


def _table_gaps(rows: Sequence[Row]) -> list[list[Gap]]:
    """Returns for each row the gaps that part cells, none where it is no row of a table.

    Rows are a table as long as they leave the same gaps free: three that have something on both
    sides of one, or two of two. A row with something in one cell alone goes on with the table.
    """
    tables: list[list[Gap]] = [[] for _ in rows]
    start = 0
    while start < len(rows):
        kept, gaps, end = _gaps(rows[start]), [], start + 1
        parted = [start]
        while kept and end < len(rows) and (kept := _free(kept, rows[end])):
            if any(_cells(gap, rows[end]) for gap in kept):
                parted.append(end)
                gaps = kept
            end += 1
        if len(parted) >= _ROWS or (len(parted) >= _ROWS - 1 and len(gaps) > 1):
            for row in range(start, parted[-1] + 1):
                tables[row] = gaps
            start = parted[-1]
        start += 1
    return tables


def _gaps(row: Row) -> list[Gap]:
    return [(a.x1, b.x0) for a, b in pairwise(row) if b.x0 - a.x1 > _CELL * a.size]


def _free(gaps: Iterable[Gap], row: Row) -> list[Gap]:
    """Returns what a row leaves of gaps, where it is wide enough to part cells."""
    spaces = pairwise([float("-inf"), *(x for f in row for x in (f.x0, f.x1)), float("inf")])
    free = [*spaces][::2]
    met = ((max(gap[0], low), min(gap[1], high)) for gap in gaps for low, high in free)
    return [(low, high) for low, high in met if high - low > _CELL * row[0].size]


def _cells(gap: Gap, row: Row) -> bool:
    return row[0].x1 <= gap[0] and gap[1] <= row[-1].x0
