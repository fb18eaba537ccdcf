"""Rows of a table: joins the lines of a cell, and writes empty cells too."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.loaders.pdf.fragments import TOUCHING, Fragment, attached, level
from leporello.loaders.pdf.words import HYPHEN

APART = 1.15  # distance of rows, in distances of the lines of a cell
HEADER = 6  # lines of a header
_LINES = 12  # lines of a cell
FIGURES = re.compile(r"[^^\w]*\d[\d.,' /:%^]*[^^\w]*|[-–—.*]+|n/?a", re.IGNORECASE)
_SMALL = re.compile(r"[^\W\d_A-Z]")
LEADERS = re.compile(r"(?<!\.)(?<!\. )(?:\. ?){4,}+$|(?<![…_])[…_]{2,}+$|(?<!\. )(?:\. ){3,}+\w+$")
_BROKEN = re.compile(rf"[-‐{HYPHEN}](?<=[^\W\d_].) (?=[^\W\d_])")
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufefc]")

Row = list[Fragment]


@dataclass(slots=True)
class TableLine:
    """A line of a table."""

    cells: dict[int, str]  # texts by column
    row: Row  # Fragments of the texts
    spans: bool  # whether text extends over several columns
    y: float  # baseline, in points below the page's upper edge


@dataclass(slots=True)
class WrittenRow(Fragment):
    """A row of a table as one fragment: cells, also empty ones, with tabs between them."""

    cells: int = 1  # number of filled cells
    opens: bool = False  # whether it is the first row of its table


def rows_of(fragments: Iterable[Fragment]) -> list[Row]:
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
    return [*map(_in_order, rows)]


def _in_order(row: Row) -> Row:
    """Returns fragments of a line in reading order."""
    backwards = reads_backwards(row)
    return sorted(row, key=lambda f: -f.x1 if backwards else f.x0)


def table_line(row: Row, columns: Iterable[int], y: float, *, spans: bool) -> TableLine:
    """Returns a row of fragments, each in its column, as a line of a table."""
    cells: dict[int, Row] = {}
    for fragment, column in zip(row, columns, strict=True):
        cells.setdefault(column, []).append(fragment)
    texts = {column: joined(_in_order(fragments)) for column, fragments in cells.items()}
    return TableLine(texts, row, spans, y)


def grouped(lines: Sequence[TableLine]) -> list[list[TableLine]]:
    """Returns the lines of each row."""
    distances = [b.y - a.y for a, b in pairwise(lines)]
    steps = sorted(distances)
    for apart in [b for a, b in pairwise(steps) if b > APART * a][::-1]:
        groups = [[lines[0]]]
        for line, distance in zip(lines[1:], distances, strict=True):
            if distance >= apart - 0.01:
                groups.append([])
            groups[-1].append(line)
        if all(map(_is_row, groups)):
            return groups
    return _continued(_with_header(lines))


def columns_of(lines: Iterable[TableLine]) -> dict[int, list[str]]:
    """Returns the texts of lines by column."""
    columns: dict[int, list[str]] = {}
    for line in lines:
        for column, text in line.cells.items():
            columns.setdefault(column, []).append(text)
    return columns


def figures_in(texts: Iterable[str]) -> int:
    """Returns how many texts are figures."""
    return sum(FIGURES.fullmatch(text) is not None for text in texts)


def _is_row(group: Sequence[TableLine]) -> bool:
    """Returns whether lines can be one row: some cell has one line, and no column two figures."""
    if len(group) == 1:
        return True
    if len(group) > _LINES or any(line.spans for line in group):
        return False
    columns = columns_of(group)
    several = [texts for texts in columns.values() if len(texts) > 1]
    figures = any(figures_in(texts) > 1 for texts in several)
    listed = any(LEADERS.search(text) for texts in several for text in texts)
    wrapped = not listed and (
        len(several) == 1 or all(" " in " ".join(texts[:-1]) for texts in several)
    )
    return len(several) < len(columns) and wrapped and not figures


def _with_header(lines: Sequence[TableLine]) -> list[list[TableLine]]:
    """Returns rows of one line, with the lines of a header together.

    A header has no figures in columns of figures.
    """
    columns = columns_of(lines[HEADER:]).items()
    figures = {c for c, texts in columns if c and figures_in(texts) > len(texts) / 2}
    count = 0
    while count < min(HEADER, len(lines)) and _is_header(lines[count], figures):
        count += 1
    distances = [b.y - a.y for a, b in pairwise(lines[: count + 1])]
    if count <= 1 or max(distances[:-1]) > distances[-1] + 0.5:
        return [[line] for line in lines]
    return [[*lines[:count]], *([line] for line in lines[count:])]


def _is_header(line: TableLine, figures: set[int]) -> bool:
    texts = [line.cells[column] for column in figures if column in line.cells]
    return bool(texts) and not line.spans and not any(map(FIGURES.fullmatch, texts))


def _continued(rows: Sequence[list[TableLine]]) -> list[list[TableLine]]:
    """Adds a line to the row above if its texts continue cells, or a label, in small letters."""
    groups: list[list[TableLine]] = []
    for row in rows:
        line = row[0]
        above = groups[-1][-1].cells if groups else {}
        is_label = [*above] == [0] and 0 in line.cells and _SMALL.match(line.cells[0]) is not None
        continues = not line.spans and 0 not in line.cells and all(
            column in above and (_SMALL.match(text) or above[column].endswith((",", "-", HYPHEN)))
            for column, text in line.cells.items()
        )  # fmt: skip
        if is_label or (continues and not any(map(FIGURES.fullmatch, line.cells.values()))):
            groups[-1].extend(row)
        else:
            groups.append(row)
    return groups


def written(groups: Iterable[Sequence[TableLine]], columns: int) -> Iterator[WrittenRow]:
    """Yields the rows of a table; text over all columns has no tabs."""
    for group in groups:
        texts = [
            _BROKEN.sub(HYPHEN, " ".join(line.cells[i] for line in group if i in line.cells))
            for i in range(columns)
        ]
        fragments = [fragment for line in group for fragment in line.row]
        filled = len([*filter(None, texts)])
        text = "\t".join(texts)
        yield WrittenRow(
            text.strip("\t") if group[0].spans and filled == 1 else text,
            min(f.x0 for f in fragments), max(f.x1 for f in fragments), group[0].y,
            max(fragments, key=lambda f: len(f.text)).size, all(f.bold for f in fragments),
            min(f.order for f in fragments), cells=filled,
        )  # fmt: skip


def reads_backwards(fragments: Sequence[Fragment]) -> bool:
    """Returns whether most fragments have letters that are read from right to left."""
    text = "".join([f.text for f in fragments])
    if text.isascii() or not _RIGHT_TO_LEFT.search(text):
        return False
    return sum(_RIGHT_TO_LEFT.search(f.text) is not None for f in fragments) * 2 > len(fragments)


def joined(row: Row) -> str:
    """Returns the text of a row; raised figures and fractions touch the text before them."""
    text, last, base = row[0].text, 0, row[0]
    for a, b in pairwise(row):
        largest = max(base.size, b.size)
        now = level(base.y - b.y, b.size, base.size)
        touches = abs(b.x0 - a.x1) < TOUCHING * largest and now != last
        upper, lower = sorted((a, b), key=lambda f: f.y)
        is_under = lower.y - upper.y > a.size and abs(a.x0 + a.x1 - b.x0 - b.x1) < a.size / 2
        if is_under and a.text.isdecimal() and b.text.isdecimal():
            text = text.removesuffix(a.text) + f"{upper.text}/{lower.text}"
        elif touches:
            text = attached(text, last, b.text, now)
        else:
            text += f" {b.text}"
            base, now = b, 0
        last = now
    return text
