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
_CELL = 0.8  # of the type's size: minimum gap between cells, if the next row has a gap there too
_GUTTER = 0.5  # of the type's size: minimum gap between columns
# One row beside another is a pair of cells, not two columns.
_LEAST = 2  # rows of a column
# The check of the file's order is linear in the fragments, so only the best gutters get it.
_TRIED = 12  # gutters that are tried
# Splits within splits; a bound, since a hostile page could nest thousands.
_COLUMNS = 6  # depth of nested splits of a page
# Formulas and note marks push lines apart without ending a paragraph.
_PITCH = 1.35  # of the usual distance of lines: larger distances separate paragraphs
_LOOSE = 2.0  # times the type's size: maximum distance of lines in a paragraph
# Smaller offsets are protruding quotation marks and rounding.
_INDENT = 0.8  # of the type's size: indentation of a paragraph's first line
# Rules around cells are not examined, so rows must prove a table by their common gaps alone.
_ROWS = 3  # rows that make a table
# Cells are short and ragged; lines of a column have many words and reach its right edge.
_PROSE_WORDS, _PROSE_WIDTH = 5, 0.7  # words per line, and share of the column that lines fill


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
    """Yields blocks that are read line by line: the page, or full-width blocks and columns."""
    gutter = _gutter(fragments) if depth else None
    if gutter is None:
        yield fragments
        return
    plain: list[Fragment] = []
    for crosses, band in _bands(fragments, gutter):
        before = [f for f in band if f.x1 <= gutter]
        after = [f for f in band if f.x1 > gutter]
        if crosses or not _are_columns(before, after):
            plain += band
            continue
        if plain:
            yield from _blocks(plain, depth - 1)
        plain = []
        yield from _blocks(before, depth - 1)
        yield from _blocks(after, depth - 1)
    if plain:
        yield plain


def _bands(fragments: list[Fragment], gutter: float) -> Iterator[tuple[bool, list[Fragment]]]:
    """Yields alternately fragments across the gutter and fragments beside it, downwards."""
    down = sorted(fragments, key=lambda f: f.y)
    for crosses, band in groupby(down, key=lambda f: f.x0 < gutter < f.x1):
        yield crosses, [*band]


def _gutter(fragments: Sequence[Fragment]) -> float | None:
    """Returns the position that separates most fragments and that few fragments cross.

    Among the best positions, the file's order of fragments decides.
    """
    begins, ends = sorted(f.x0 for f in fragments), sorted(f.x1 for f in fragments)
    narrowest = _GUTTER * median(f.size for f in fragments) if fragments else 0.0
    positions: dict[
        int, tuple[float, float]
    ] = {}  # score and position by index of the next fragment
    beginning = 0
    for ended, end in enumerate(ends, 1):
        while beginning < len(begins) and begins[beginning] < end:
            beginning += 1
        after = len(begins) - beginning
        if not after:
            break
        crossing, gap = len(begins) - ended - after, begins[beginning] - end
        if gap > narrowest and (score := min(ended, after) - crossing / 2) >= _LEAST:
            positions[beginning] = (score, end + gap / 2)
    # By the fragments that a gutter separates, not its width: cells leave wide gaps too.
    best = [place for _, place in sorted(positions.values(), reverse=True)[:_TRIED]]
    for place in best:
        before = [f for f in fragments if f.x1 <= place]
        # The file's own order beats geometry: programs write a column to its end before the next.
        if _in_turn(before, [f for f in fragments if f.x0 >= place]):
            return place
    return best[0] if best else None


def _are_columns(first: Sequence[Fragment], second: Sequence[Fragment]) -> bool:
    """Returns whether two sides are columns, not cells of a table.

    They are columns if the file has them in turn, or if both are prose.
    """
    if min(len(_rows(first)), len(_rows(second))) < _LEAST:
        return False
    # Prose in both sides still counts, since some programs write columns line by line.
    return _in_turn(first, second) or (_is_prose(first) and _is_prose(second))


def _in_turn(first: Sequence[Fragment], second: Sequence[Fragment]) -> bool:
    """Returns whether nearly all of one side is before the other side in the file."""
    sides = [
        side for _, side in sorted([(f.order, 0) for f in first] + [(f.order, 1) for f in second])
    ]
    # One change of sides is perfect order; a twentieth more tolerates notes and captions.
    return sum(a != b for a, b in pairwise(sides)) <= 1 + len(sides) // 20


def _is_prose(side: Sequence[Fragment]) -> bool:
    width = max(f.x1 for f in side) - min(f.x0 for f in side)
    words = fmean(f.text.count(" ") + 1 for f in side)
    return words >= _PROSE_WORDS and median(f.x1 - f.x0 for f in side) >= _PROSE_WIDTH * width


def _rows(fragments: Iterable[Fragment]) -> list[Row]:
    """Groups fragments into rows downwards, in reading order within a row."""
    rows: list[Row] = []
    y = size = 0.0
    for fragment in sorted(fragments, key=lambda f: f.y):
        if rows and fragment.y - y < 0.45 * max(size, fragment.size):
            rows[-1].append(fragment)
            if fragment.size > size:  # smaller fragments are above or below the baseline
                y, size = fragment.y, fragment.size
        else:
            rows.append([fragment])
            y, size = fragment.y, fragment.size
    for row in rows:
        # By majority, since rows of Arabic or Hebrew contain Latin names and numbers.
        backwards = sum(bool(_RIGHT_TO_LEFT.search(f.text)) for f in row) * 2 > len(row)
        row.sort(key=lambda f: -f.x1 if backwards else f.x0)
    return rows


def _written(rows: Sequence[Row]) -> Iterator[PageLine]:
    """Yields the lines of a block with tables and paragraphs."""
    tables = _table_gaps(rows)
    pitches = [b[0].y - a[0].y for a, b in pairwise(rows)]
    pitch = median(pitches) if pitches else 0.0
    margin = min((row[0].x0 for row in rows), default=0.0)
    for i, row in enumerate(rows):
        # Otherwise each row whose first cell is empty would open a paragraph.
        set_in = math.inf if tables[i] else margin  # cells have no indentation
        size = max(row, key=lambda f: len(f.text)).size
        text = row[0].text
        for a, b in pairwise(row):
            cell = any(a.x1 <= low and high <= b.x0 for low, high in tables[i])
            text += ("\t" if cell else " ") + b.text
        opens = i == 0 or _opens(rows, i, pitch, set_in) or bool(tables[i]) != bool(tables[i - 1])
        y = max(row, key=lambda f: f.size).y
        yield PageLine(text, y, size, all(f.bold for f in row), opens)


def _opens(rows: Sequence[Row], i: int, pitch: float, margin: float) -> bool:
    """Returns whether a row begins a paragraph: after a gap, in other type, or indented."""
    row, last = rows[i][0], rows[i - 1][0]
    # Bounded on both sides: on a page of a few lines the median distance means little.
    usual = min(max(pitch, row.size), _LOOSE * row.size)
    if row.y - last.y > _PITCH * usual or abs(row.size - last.size) > 0.1 * row.size:
        return True
    # The next line must be flush too: a block quotation is indented throughout, and is one
    # paragraph.
    following = rows[i + 1][0].x0 if i + 1 < len(rows) else margin
    flush = 0.3 * row.size
    return (
        row.x0 - margin > _INDENT * row.size
        and last.x0 - margin < flush
        and following - margin < flush
    )


Gap = tuple[float, float]


def _table_gaps(rows: Sequence[Row]) -> list[list[Gap]]:
    """Returns for each row the gaps between cells; empty for rows outside of tables.

    Rows are a table while they leave the same gaps free: three rows with text on both sides of one
    gap, or two rows of two gaps. A row with text in only one cell continues the table.
    """
    tables: list[list[Gap]] = [[] for _ in rows]
    start = 0
    while start < len(rows):
        common, gaps, end = _gaps(rows[start]), [], start + 1
        parted = [start]
        while common and end < len(rows) and (common := _free(common, rows[end])):
            if any(_cells(gap, rows[end]) for gap in common):
                parted.append(end)
                gaps = common
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
    """Returns the parts of gaps that a row leaves free, if wide enough to separate cells."""
    spaces = pairwise([float("-inf"), *(x for f in row for x in (f.x0, f.x1)), float("inf")])
    free = [*spaces][::2]
    met = ((max(gap[0], low), min(gap[1], high)) for gap in gaps for low, high in free)
    return [(low, high) for low, high in met if high - low > _CELL * row[0].size]


def _cells(gap: Gap, row: Row) -> bool:
    return row[0].x1 <= gap[0] and gap[1] <= row[-1].x0
