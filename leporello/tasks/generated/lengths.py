"""How much of something a text of a number of tokens has."""

from __future__ import annotations

from collections.abc import Callable


def largest(fits: Callable[[int], bool], step: int, most: int | None = None) -> int:
    """Returns the largest multiple of `step` that fits, or `most` if all up to it do.

    It is found in as many trials as the number has digits, where the authors' scripts go up step by
    step: what is longer than one that does not fit does not fit either.

    Args:
        fits: Function that tells whether a number of things is few enough.
        step: Number that the sizes are multiples of; at least one is returned, fitting or not.
        most: Number of things that there are; None if there is no end.
    """
    good, bad = 1, 2
    while (most is None or bad * step <= most) and fits(bad * step):
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        above = most is not None and middle * step > most
        good, bad = (good, middle) if above or not fits(middle * step) else (middle, bad)
    if most is not None and (good + 1) * step > most and fits(most):
        return most
    return good * step
