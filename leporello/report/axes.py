"""Where values stand on an axis, and which of them are marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

_FEW = 8  # values of an axis that are told one by one
_DECADE = 10


def scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """Returns what takes `low` to `start`, `high` to `end`, and what is between in proportion."""
    return lambda value: start + (value - low) / (high - low) * (end - start)


def ticks(low: float, high: float) -> list[float]:
    """Returns four to ten round numbers within an interval."""
    rough = (high - low) / 5 or 1.0
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= rough)
    first = math.ceil(low / step)
    return [round(n * step, 10) for n in range(first, math.floor(high / step) + 1)]


def x_values(values: Collection[float], logarithmic: bool) -> list[float]:
    """Returns where an axis is marked: at the values where they are few and whole, else evenly."""
    low, high = min(values), max(values)
    if logarithmic and high >= _DECADE * low:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [d * 10.0**p for p in powers for d in (1, 2, 5) if low <= d * 10.0**p <= high]
    if not logarithmic and len(values) <= _FEW and all(float(v).is_integer() for v in values):
        return sorted(values)
    return ticks(low, high) if low < high else [low]


def short_number(value: float) -> str:
    """Returns a number as an axis has room for it."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= 10 * unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.4g}"
