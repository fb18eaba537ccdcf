"""Finds the rows of a table that name its columns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Rows: TypeAlias = Sequence[Sequence[str]]

LOOKED_AT = 50  # rows of a table that are examined
_FIRST = 10  # of these, the rows that may be a header; titles may precede it
TWO = 2  # columns; a header of words over two columns of words looks like any other row
MOST = 3 / 4  # share of the rows that a header must be as wide as
_FIGURE = re.compile(
    r"[-+(]?[$€£¥]?\s*\d[\d.,:/%\s-]*(?:e[-+]?\d+)?\)?\s?(?:[$€£¥%*]|[^\W\d_]{1,3})?|true|false",
    re.I,
)
_YEAR = re.compile(r"(?:19|20)\d\d(?:[-/.]\d\d){0,2}")
_UNIT = re.compile(r"[(\[]?(?:[^\W\d]|[%°$€£¥]){1,3}\d?(?:/[^\W\d]{1,3}\d?)?[)\]]?")
_MISSING = re.compile(
    r"[-–—?.…]+|n\W?/?[ad]\.?|nan|nil|none|null|unknown|missing|absent|void|tb[acd]|#[\w/]+[!?]?",
    re.I,
)


@dataclass(frozen=True, slots=True)
class HeaderRows:
    """Rows that name columns."""

    start: int  # number of the first row
    stop: int  # number of the row below the last row
    names: Sequence[str]  # names of all columns; some may be empty


def is_figure(cell: str) -> bool:
    """Returns whether a cell is a number, an amount, a date, a time or a truth value."""
    return bool(cell) and _FIGURE.fullmatch(cell) is not None


def is_missing(cell: str) -> bool:
    """Returns whether a cell has a word that replaces a figure, such as `n/a`."""
    return _MISSING.fullmatch(cell) is not None


def heading(rows: Rows, full: Rows) -> HeaderRows | None:
    """Returns the header of a table, from its first rows; None without a header.

    A header is as wide as most rows, has a different word or year in each column, and is above
    figures or over three columns. A row with gaps or equal words is a header if it is directly
    above figures. Words over several columns, and units below, belong to the header. `full` are the
    rows with the text of merged cells in each cell that they cover.
    """
    return _Head(rows, full).heading() if len(rows) > 1 else None


class _Head:
    def __init__(self, rows: Rows, full: Rows) -> None:
        self.rows = rows
        self.full = [f if any(row) else row for row, f in zip(rows, full, strict=True)]
        counts = sorted(sum(map(bool, row)) for row in self.full if any(row))
        self.usual = counts[int(len(counts) * MOST)] if counts else 0

    def heading(self) -> HeaderRows | None:
        candidates = [*self._candidates()]
        for i in candidates:
            if header := self._at(i, is_strict=True):
                return header
            if sum(map(bool, self.rows[i])) >= max(self.usual, 2):
                break  # no other row can be the header
        return next(filter(None, (self._at(i, is_strict=False) for i in candidates)), None)

    def _candidates(self) -> Iterator[int]:
        """Yields the rows of words or years above the first complete row with figures."""
        for i, row in enumerate(self.rows[:_FIRST]):
            cells = [cell for cell in row if cell]
            if all(_YEAR.fullmatch(cell) for cell in cells if is_figure(cell)):
                is_complete = len(cells) > 1 or (i == 0 and bool(cells) and not row[0])
                if is_complete and not any(map(is_missing, cells)):
                    yield i
            elif len(cells) > 1 and len(cells) >= self.usual * MOST:
                return

    def _at(self, i: int, *, is_strict: bool) -> HeaderRows | None:
        start, stop = i, i + 1
        while start and self._groups(start - 1, i):
            start -= 1
        while stop < len(self.rows) - 1 and self._subdivides(stop):
            stop += 1
        names, below = self._names(start, stop), self.full[stop:]
        columns = [c for c, name in enumerate(names) if name]
        figures = {c: [row[c] for row in below if is_figure(row[c])] for c in columns}
        if any(
            _YEAR.fullmatch(names[c]) and all(map(_YEAR.fullmatch, figures[c])) for c in columns
        ):
            return None  # years above years are values
        has_figures = any(figures.values())
        if is_strict:
            is_header = (
                len(columns) >= max(self.usual, 2)
                and len({names[c] for c in columns}) == len(columns)
                and (has_figures or len(columns) > TWO)
            )
        else:
            is_header = 2 * len(columns) >= self.usual and any(
                is_figure(row[c]) for row in below[:1] for c in columns
            )
        return HeaderRows(start, stop, names) if below and is_header else None

    def _groups(self, j: int, i: int) -> bool:
        """Returns whether row `j` has words over several columns of the header row `i`."""
        row, full = self.rows[j], self.full[j]
        filled = [c for c, cell in enumerate(row) if cell]
        if not filled or any(is_figure(row[c]) and not _YEAR.fullmatch(row[c]) for c in filled):
            return False
        gaps = [c for c, cell in enumerate(row) if not cell and c > filled[0] and self.full[i][c]]
        last = max((c for c, name in enumerate(self.full[i]) if name), default=0)
        texts = {*filter(None, full[: last + 1])}  # a title of other cells may be further right
        if len(texts) == 1 and (filled[0] == 0 or not gaps):
            return False  # a title
        is_merged = any(not cell and text for cell, text in zip(row, full, strict=True))
        is_repeated = any(before == cell != "" for before, cell in pairwise(row))
        is_first_free = not row[0] or not self.rows[i][0]
        return is_merged or is_repeated or (bool(gaps) and is_first_free)

    def _subdivides(self, k: int) -> bool:
        """Returns whether a row below a header has more of it: words below a group, or units."""
        row, full, above = self.rows[k], self.full[k], self.full[k - 1]
        filled = [c for c, cell in enumerate(row) if cell]
        if not filled or any(is_figure(row[c]) or is_missing(row[c]) for c in filled):
            return False
        if any(f and not cell and f == a for cell, f, a in zip(row, full, above, strict=True)):
            return True  # a merged cell of the header covers this row too
        below = self.full[k + 1]
        above_figures = [c for c in filled if is_figure(below[c])]
        if not row[0]:
            return bool(above_figures) and all(
                is_figure(below[c]) or is_missing(below[c]) for c in filled
            )
        return len(above_figures) > 1 and all(_UNIT.fullmatch(row[c]) for c in above_figures)

    def _names(self, start: int, stop: int) -> list[str]:
        names: list[list[str]] = [[] for _ in self.rows[0]]
        last = self.full[stop - 1]
        for j in range(start, stop):
            spread = ""
            for c, cell in enumerate(self.full[j]):
                # A word spreads over the gaps to its right.
                spread = cell or (spread if j + 1 < stop and last[c] and last[c - 1] else "")
                if spread and names[c][-1:] != [spread]:
                    names[c].append(spread.removeprefix("# "))
        return [re.sub(r" / (?=[(\[])", " ", " / ".join(parts)) for parts in names]
