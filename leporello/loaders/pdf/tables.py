"""Finds tables among the rows of a block, and gives every cell its column."""

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from operator import attrgetter
from statistics import median

from leporello.loaders.pdf.cells import (
    APART,
    FIGURES,
    HEADER,
    LEADERS,
    Row,
    TableLine,
    grouped,
    table_line,
    written,
)
from leporello.loaders.pdf.fragments import Fragment

_CELL = 0.8  # of the type's size: minimum gap between cells, if the next row has a gap there too
_ROWS = 3  # rows that make a table
_SHARE = 10  # one row in so many may have text over the gap between two columns
_NEAR = 1.3  # usual distances of lines: a line of a table that begins or ends with one cell
_ALIGNED = 2.0  # points
_FREE = 1.0  # points between narrow columns
_BLANK = 0.03  # of a character's width: difference of blanks in type of one width
_WORDS = 4  # blanks in a line of prose
_MARKER = re.compile(r"[^\w\s]|\(?[\dIVXivx]{1,4}[.):]|\(?[A-Za-z][.)]|\[[^\s\]]+\]|(?:\d+\.)+\d+")
_CODE = re.compile(r"[;{}](?: *(?://|/\*|#).*)?$|[%\\#](?<=^.)|\\\w|\(\)(?<=[\w)]..)|[-=]>")

Gap = tuple[float, float]


def with_tables(rows: Sequence[Row]) -> list[Row]:
    """Replaces the rows of each table in a block by written rows.

    Rows are a table while they leave the same gaps free: three rows with text on both sides of one
    gap, or two rows of two gaps. All rows together give the columns. Rows from right to left have
    none.
    """
    replaced: list[Row] = []
    divided = [*rows]
    end = 0
    for start, stop in _regions(divided):
        middles = _columns(divided[start:stop])
        if narrow := _narrow(divided[start:stop], middles):
            near = slice(max(start - 1, end), stop + 1)
            divided[near] = [_divided(row, narrow) for row in divided[near]]
            middles = sorted({*middles, *narrow})
        first, last = _extended(divided, end, start, stop, middles)
        lines = [_line(row, middles) for row in divided[first:last]]
        most = max(len(line.cells) for line in lines)
        if 2 * most <= len(middles) or _is_prose(lines):  # indentation has many left edges
            continue
        table = [*written(grouped(lines), len(middles) + 1)]
        table[0].opens = True
        replaced += rows[end:first]
        replaced.extend([row] for row in table)
        end = last
    return [*replaced, *rows[end:]]


def _regions(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Yields the first row and the row after the last of each table."""
    start = 0
    while start < len(rows):
        common, gaps, end = _gaps(rows[start]), 0, start + 1
        parted = [start]
        while common and end < len(rows) and (common := _free(common, rows[end])):
            if any(rows[end][0].x1 <= low and high <= rows[end][-1].x0 for low, high in common):
                parted.append(end)
                gaps = len(common)
            end += 1
        if len(parted) >= _ROWS or (len(parted) >= _ROWS - 1 and gaps > 1):
            yield start, parted[-1] + 1
            start = parted[-1]
        start += 1


def _narrow(rows: Sequence[Row], wide: Sequence[float]) -> list[float]:
    """Returns the middles of gaps within texts that all rows leave free.

    Several rows have text on both sides, up to the next wide gap.
    """
    gaps = sorted({gap for row in rows for f in row if f.gaps for gap in _wider(f)})
    if not gaps or any(map(_has_leaders, rows)):
        return []
    parts = [[*chain.from_iterable(map(_extents, row))] for row in rows]
    middles: list[float] = []
    for low, high in gaps:
        if middles and low < middles[-1] < high:
            continue
        for x0, x1 in (part for row in parts for part in row if part[0] < high and part[1] > low):
            low, high = (max(low, x1), high) if x0 <= low else (low, min(high, x0))  # noqa: PLW2901
        if high - low > _FREE:
            middles.append((low + high) / 2)
    merged = sorted({*middles, *wide})
    number = Counter(column for row in parts for column in {bisect(merged, x0) for x0, _ in row})
    return [
        middle for column, middle in enumerate(merged)
        if middle in middles and min(number[column], number[column + 1]) >= _ROWS
    ]  # fmt: skip


def _wider(fragment: Fragment) -> Iterator[Gap]:
    """Yields the gaps of a text, without leaders, gaps after marks and blanks of a typewriter.

    Such blanks count if all words are figures.
    """
    text = fragment.text
    usual = (fragment.x1 - fragment.x0) / len(text)
    has_blanks = not all(map(FIGURES.fullmatch, text.split()))
    for at, low, high in fragment.gaps:
        is_blank = has_blanks and abs(high - low - usual) < _BLANK * usual
        if not (is_blank or text[at + 1 : at + 2] in ".…" or _MARKER.fullmatch(text[:at])):
            yield low, high


def _has_leaders(row: Row) -> bool:
    """Returns whether a row is an entry of a table of contents with leaders."""
    *before, last = [f.text for f in row]
    is_page = bool(before) and last.isdecimal()
    return LEADERS.search(before[-1] if is_page else last) is not None


def _extents(fragment: Fragment) -> Iterator[tuple[float, float]]:
    """Yields the beginning and end of the parts of a text between its gaps."""
    edges = [fragment.x0, *(x for _, *gap in fragment.gaps for x in gap), fragment.x1]
    return zip(edges[::2], edges[1::2], strict=True)


def _divided(row: Row, middles: Sequence[float]) -> Row:
    """Divides the texts of a row at gaps."""
    parts: Row = []
    for fragment in row:
        part = fragment
        for at, low, high in fragment.gaps:
            if any(low < middle < high for middle in middles):
                cut = len(fragment.text) - len(part.text)
                parts.append(replace(part, text=part.text[: at - cut], x1=low, gaps=()))
                part = replace(part, text=part.text[at - cut :].lstrip(), x0=high)
        parts.append(part)
    return parts


def _gaps(row: Row) -> list[Gap]:
    if len(row) == 1:
        return []
    return [(a.x1, b.x0) for a, b in pairwise(row) if b.x0 - a.x1 > _CELL * a.size]


def _free(gaps: Iterable[Gap], row: Row) -> list[Gap]:
    """Returns the parts of gaps that a row leaves free, if wide enough to separate cells."""
    ends, begins = [-math.inf, *(f.x1 for f in row)], [*(f.x0 for f in row), math.inf]
    free = [*zip(ends, begins, strict=True)]
    met = ((max(gap[0], low), min(gap[1], high)) for gap in gaps for low, high in free)
    return [(low, high) for low, high in met if high - low > _CELL * row[0].size]


def _columns(rows: Sequence[Row]) -> list[float]:
    """Returns the middles of the gaps between columns.

    A gap separates texts of several rows, and is free in nearly all of them: a heading over
    several columns may cross it.
    """
    valleys = _valleys(rows)
    gaps = [_gaps(row) for row in rows]
    middles: list[float] = []
    for low, high, crossing in valleys:
        middle = (low + high) / 2
        around = [i for i, of in enumerate(gaps) if any(a <= middle <= b for a, b in of)]
        if len(around) > 3 * crossing and (len(around) > 1 or around[:1] == [0]):
            middles.append(middle)
    return _without_heads(rows, middles)


def _valleys(rows: Sequence[Row]) -> Iterator[tuple[float, float, int]]:
    """Yields beginning, end and number of crossing rows of gaps between columns."""
    edges = sorted(
        [(f.x0, 1) for row in rows for f in row] + [(f.x1, -1) for row in rows for f in row]
    )
    few = len(rows) // _SHARE or int(len(rows) > _ROWS)
    count, low, falls = 0, 0.0, False
    for x, step in edges:
        if step < 0:
            low, falls = x, True
        elif falls and count <= few:
            yield low, x, count
            falls = False
        else:
            falls = False
        count += step


def _without_heads(rows: Sequence[Row], middles: list[float]) -> list[float]:
    """Joins a column with only a head to its neighbour without one: figures right of their head."""
    rows_of: list[set[int]] = [set() for _ in range(len(middles) + 1)]
    for i, row in enumerate(rows):
        for fragment in row:
            rows_of[bisect(middles, fragment.x0)].add(i)
    separators: list[float] = []
    west = rows_of[0]
    for middle, east in zip(middles, rows_of[1:], strict=True):
        if _is_head(west, east) or _is_head(east, west):
            west = west | east
            continue
        separators.append(middle)
        west = east
    return separators


def _is_head(head: set[int], body: set[int]) -> bool:
    return bool(head and body) and max(head) < min(HEADER - 1, *body)


def _extended(
    rows: Sequence[Row], least: int, start: int, stop: int, middles: Sequence[float]
) -> tuple[int, int]:
    """Returns the first row and the row after the last, with adjacent lines of single cells."""
    distances = [b[0].y - a[0].y for a, b in pairwise(rows[start:stop])]
    pitch = median(distances)
    within = min(distances) + 0.5 if max(distances) > APART * min(distances) else 0.0
    edges = [_edges(f) for row in rows[start:stop] for f in row]

    def aligned(fragment: Fragment) -> bool:
        ends = _edges(fragment)
        return any(abs(a - b) < _ALIGNED for cell in edges for a, b in zip(ends, cell, strict=True))

    def belongs(row: Row, beside: Row) -> bool:
        distance = abs(row[0].y - beside[0].y)
        return distance <= _NEAR * pitch and all(
            (distance <= within or len(row) > 1 or bisect(middles, f.x0) > 0)
            and bisect(middles, f.x0) == bisect(middles, f.x1)
            and aligned(f)
            for f in row
        )

    while start > least and belongs(rows[start - 1], rows[start]):
        start -= 1
    while stop < len(rows) and belongs(rows[stop], rows[stop - 1]):
        stop += 1
    return start, stop


def _edges(fragment: Fragment) -> tuple[float, float, float]:
    return fragment.x0, (fragment.x0 + fragment.x1) / 2, fragment.x1


def _line(row: Row, middles: Sequence[float]) -> TableLine:
    columns = [bisect(middles, f.x0) for f in row]
    spans = any(bisect(middles, f.x1) > c for f, c in zip(row, columns, strict=True))
    return table_line(row, columns, max(row, key=attrgetter("size")).y, spans=spans)


def _is_prose(lines: Sequence[TableLine]) -> bool:
    """Returns whether lines are a list with markers, paragraphs with heads beside them, or code."""
    first = [line.cells[0] for line in lines if 0 in line.cells]
    if all(map(_MARKER.fullmatch, first)) and not any(line.cells.keys() - {0, 1} for line in lines):
        return True
    texts = [" ".join(line.cells.values()) for line in lines]
    alone = [
        text for text, line in zip(texts, lines, strict=True)
        if len(line.cells) == 1 and text.count(" ") >= _WORDS
    ]  # fmt: skip
    code = sum(_CODE.search(text) is not None for text in texts)
    return max(len(alone), code) * 2 > len(lines)
