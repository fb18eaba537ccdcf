"""Fragments of lines of text, also of turned ones, and raised and lowered figures in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from leporello.loaders.figures import raised

SLANTED = 4  # direction of text in other angles than multiples of 90°
_HEADS = 3  # turned texts that end at one height


@dataclass(slots=True)
class Fragment:
    """Adjacent words in a line, without a wide gap between them."""

    text: str  # words, separated by spaces
    x0: float  # beginning, in points along the line
    x1: float  # end, in points along the line
    y: float  # baseline, in points below the page's upper edge
    size: float  # size of the type, in points
    bold: bool  # whether the type is bold, from the first character to the last
    order: int  # position in the order of the file
    # Gaps that may separate narrow columns: position in the text, beginning and end in points
    gaps: tuple[tuple[int, float, float], ...] = ()


def turned(turn: int, x: float, y: float) -> tuple[float, float]:
    """Returns the positions of a point along and across lines of text, turned by quarter turns."""
    return ((x, -y), (y, x), (-x, y), (-y, -x), (x, -y))[turn]


def turned_box(
    turn: int, west: float, south: float, east: float, north: float
) -> tuple[float, float, float, float]:
    """Returns beginning, top, end and bottom of a box along lines of text."""
    (a, b), (c, d) = turned(turn, west, south), turned(turn, east, north)
    return min(a, c), min(b, d), max(a, c), max(b, d)


def upright(fragments: Sequence[tuple[Fragment, int]], main: int) -> list[tuple[Fragment, int]]:
    """Returns fragments with turned heads of columns placed in the line where they end.

    Single characters of a turned page have no direction, so this places them too.
    """
    across = [(f, turn) for f, turn in fragments if turn < SLANTED and (turn - main) % 2]
    if not across:
        return [*fragments]
    placed = {id(f): _placed(f, turn, main) for f, turn in across}
    ends = [f.y for f in placed.values()]
    heads = {
        key: f for key, f in placed.items() if sum(abs(f.y - y) < f.size for y in ends) >= _HEADS
    }
    return [(heads[id(f)], main) if id(f) in heads else (f, turn) for f, turn in fragments]


def _placed(fragment: Fragment, turn: int, main: int) -> Fragment:
    """Returns a turned fragment as it is seen in the main direction."""
    corners = (fragment.x0, fragment.y), (fragment.x1, fragment.y - fragment.size)
    (a, c), (b, d) = (turned(main, *_unturned(turn, *corner)) for corner in corners)
    return replace(fragment, x0=min(a, b), x1=max(a, b), y=max(c, d), gaps=())


def _unturned(turn: int, along: float, across: float) -> tuple[float, float]:
    """Returns the point of a page at a position along and across lines of text."""
    return ((along, -across), (across, along), (-along, across), (-across, -along))[turn]


_RAISED = 0.12  # of a glyph's height: smaller distances from the baseline are within a line
SMALLER = 0.93  # of the height of the type: a smaller glyph
TOUCHING = 0.15  # of the type's size: smaller gaps are within a word
_ISOTOPE = re.compile(r"[A-Z][a-z]?(?![^\W\d_])")
_ABOVE = re.compile(r"(|.*\s|.*(?=\^))\^?(\d+)", re.S)
_MARK = re.compile(r"(.*)\^(\S+)", re.S)


def level(rise: float, height: float, usual: float) -> int:
    """Returns 1 for a raised glyph, -1 for a lowered one, otherwise 0.

    `rise` is its distance from the baseline upwards, `usual` the height of the type there.
    """
    least = (1.0 if height < SMALLER * usual else 2.0) * _RAISED * usual
    return 1 if rise > least else -1 if rise < -least / 2 else 0


def attached(before: str, last: int, text: str, now: int) -> str:
    """Appends text to text that it touches, with signs where figures would run together.

    `last` is the level of the end of `before`, `now` that of `text`.
    """
    if now > 0:
        first, end = ("", "") if last > 0 else raised(text)
        return before + first + text + end
    figures = before[-1:].isdigit() and text[:1].isdigit()
    if last > 0 and (mark := _MARK.fullmatch(before)):
        return _after_mark(mark[1], mark[2], text)
    if figures and now != last:
        return f"{before}{'_' if now < 0 and not last else ' '}{text}"
    return before + text


def fraction(before: str, runs: Sequence[tuple[str, int]]) -> str:
    """Returns text whose last number is above a number, or nothing if these are not numbers."""
    below = "".join(text for text, _ in runs)
    above = _ABOVE.fullmatch(before)
    if not above or not below.isdecimal():
        return ""
    return f"{above[1]}{' ' * above[1][-1:].isdigit()}{above[2]}/{below}"


def _after_mark(base: str, mark: str, text: str) -> str:
    """Appends text to a base with a raised mark."""
    if text[0] in "/⁄" and mark.isdigit():  # a fraction
        return f"{base}{' ' * base[-1:].isdigit()}{mark}{text}"
    if mark.isalpha() and text[0].isalpha():  # a logo
        return base + mark + text
    leads = not base or base[-1].isspace()
    glued = not text[0].isalnum() or (leads and _ISOTOPE.match(text))
    return f"{base}^{mark}{'' if glued else ' '}{text}"
