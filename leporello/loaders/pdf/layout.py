"""Puts fragments of a page in reading order: columns, rows, cells, paragraphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median

from leporello.loaders.pdf.cells import Row, WrittenRow, figures_in, joined, rows_of
from leporello.loaders.pdf.fragments import Fragment
from leporello.loaders.pdf.tables import with_tables

_GUTTER = 0.5  # of the type's size: minimum gap between columns
_LEAST = 2  # rows of a column
_TRIED = 12  # gutters that are tried
_COLUMNS = 6  # depth of nested splits of a page
_APART, _FIGURES = 0.4, 0.2  # pairs of cells, and figures, in a table that is drawn by columns
_PITCH = 1.35  # of the usual distance of lines: larger distances separate paragraphs
_LOOSE = 2.0  # times the type's size: maximum distance of lines in a paragraph
_INDENT = 0.8  # of the type's size: indentation of a paragraph's first line
_PROSE_WORDS, _PROSE_WIDTH = 5, 0.7  # words per line, and share of the column that lines fill


@dataclass(slots=True)
class PageLine:
    """A line of text."""

    text: str  # text, with tabs between table cells, and `HYPHEN` for a hyphen at the end
    y: float  # baseline, in points below the page's upper edge
    size: float  # size of most of the type, in points
    bold: bool  # whether all of the type is bold
    opens: bool  # whether a paragraph, column or table begins with the line


Pages = Sequence[Sequence[PageLine]]  # the lines of each page


def lines(fragments: Sequence[Fragment]) -> list[PageLine]:
    """Returns a page's lines in reading order.

    The fragments have one direction, and the order of the file.
    """
    blocks = _blocks(list(fragments), _COLUMNS)
    return [line for block in blocks for line in _written(rows_of(block))]


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
    counted = [*fragments]
    for ruled in [f for f in fragments if type(f) is WrittenRow]:
        counted += [ruled] * (ruled.cells - 1)
    begins, ends = sorted(f.x0 for f in counted), sorted(f.x1 for f in counted)
    narrowest = _GUTTER * median(f.size for f in fragments) if fragments else 0.0
    # Score and position by index of the next fragment
    positions: dict[int, tuple[float, float]] = {}
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
    best = [place for _, place in sorted(positions.values(), reverse=True)[:_TRIED]]
    for place in best:
        before = [f for f in fragments if f.x1 <= place]
        if _in_turn(before, [f for f in fragments if f.x0 >= place]):
            return place
    return best[0] if best else None


def _are_columns(first: Sequence[Fragment], second: Sequence[Fragment]) -> bool:
    """Returns whether two sides are columns, not cells of a table.

    They are columns if the file has them in turn, or if both are prose.
    """
    if min(len(rows_of(first)), len(rows_of(second))) < _LEAST:
        return False
    if _in_turn(first, second):
        return not _is_drawn_by_columns([*first, *second])
    return _is_prose(first) and _is_prose(second)


def _is_drawn_by_columns(fragments: Sequence[Fragment]) -> bool:
    """Returns whether the cells of a table with figures are in the file column by column."""
    pairs = [pair for row in rows_of(fragments) for pair in pairwise(row)]
    apart = sum(abs(b.order - a.order) > 1 for a, b in pairs)
    figures = figures_in(f.text for f in fragments)
    return (
        apart > _APART * len(fragments)
        and apart == len(pairs)
        and figures > _FIGURES * len(fragments)
    )


def _in_turn(first: Sequence[Fragment], second: Sequence[Fragment]) -> bool:
    """Returns whether nearly all of one side is before the other side in the file."""
    sides = [
        side for _, side in sorted([(f.order, 0) for f in first] + [(f.order, 1) for f in second])
    ]
    return sum(a != b for a, b in pairwise(sides)) <= 1 + len(sides) // 20


def _is_prose(side: Sequence[Fragment]) -> bool:
    width = max(f.x1 for f in side) - min(f.x0 for f in side)
    words = fmean(f.text.count(" ") + 1 for f in side)
    return words >= _PROSE_WORDS and median(f.x1 - f.x0 for f in side) >= _PROSE_WIDTH * width


def _written(rows: Sequence[Row]) -> Iterator[PageLine]:
    """Yields the lines of a block with tables and paragraphs."""
    pitches = [b[0].y - a[0].y for a, b in pairwise(rows)]
    pitch = median(pitches) if pitches else 0.0
    margin = min((row[0].x0 for row in rows), default=0.0)
    runs = ((is_ruled, [*run]) for is_ruled, run in groupby(rows, _is_table))
    rows = [row for is_ruled, run in runs for row in (run if is_ruled else with_tables(run))]
    is_after_table = True
    for i, row in enumerate(rows):
        if is_table := _is_table(row):
            opens = any(f.opens for f in row if isinstance(f, WrittenRow))
            yield _line("\t".join(f.text for f in row), row, opens)
        else:
            yield _line(joined(row), row, is_after_table or _opens(rows, i, pitch, margin))
        is_after_table = is_table


def _is_table(row: Row) -> bool:
    return WrittenRow in map(type, row)


def _line(text: str, row: Row, opens: bool) -> PageLine:
    size = max(row, key=lambda f: len(f.text)).size
    y = max(row, key=lambda f: f.size).y
    return PageLine(text, y, size, all(f.bold for f in row), opens)


def _opens(rows: Sequence[Row], i: int, pitch: float, margin: float) -> bool:
    """Returns whether a row is the first of a paragraph: after a gap, in other type, indented."""
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
