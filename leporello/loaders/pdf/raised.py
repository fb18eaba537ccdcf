"""Raised and lowered figures: `10^6`, `note^3`, `1/2`, `H2O`."""

import re
from collections.abc import Sequence

from leporello.loaders.figures import raised

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
