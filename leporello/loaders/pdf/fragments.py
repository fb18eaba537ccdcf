"""Fragments of lines of text, also of turned ones: positions along and across the lines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    """Returns fragments with turned heads of columns placed in the line where they end."""
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
