"""Choices that YAML leaves open, sweeps and ranges, of which `tune` takes one value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from leporello.core.yaml.tree import Tree

_DIGITS = 4  # of a number that is chosen from a range; more say nothing


@dataclass(frozen=True, slots=True)
class Options:
    """A choice of one of several.

    Attributes:
        labels: Labels of the options, each once.
    """

    labels: tuple[str, ...]

    def value(self, picked: float) -> str:
        """Returns the label of the option of this number."""
        return self.labels[int(picked)]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A choice of a number.

    Attributes:
        low: Lowest number.
        high: Highest number.
        log: Whether small numbers are as likely as large ones, by their logarithms.
        whole: Whether it is a whole number.
    """

    low: float
    high: float
    log: bool
    whole: bool

    def value(self, picked: float) -> float:
        """Returns a number as it is used: whole, or rounded and between the ends."""
        if self.whole:
            return int(picked)
        return min(max(float(f"{picked:.{_DIGITS}g}"), float(self.low)), float(self.high))


Choice: TypeAlias = Options | NumberRange
# Decides: from the path of a choice, and the choice, to the number of an option, or a number.
Pick: TypeAlias = Callable[[str, Choice], float]


def first(_: str, choice: Choice) -> float:
    """Picks the first option, or the lowest number."""
    return 0 if isinstance(choice, Options) else choice.low


def is_range(tree: Tree) -> bool:
    """Returns whether a tree is `{range: …}`."""
    return "range" in tree.items and set(tree.items) <= {"range", "log"}


def swept_in(tree: Tree) -> Sequence[Tree] | None:
    """Returns the items of `{sweep: […]}`, or None."""
    if set(tree.items) != {"sweep"}:
        return None
    inner = tree.items["sweep"]
    return inner.value if isinstance(inner.value, list) else [inner]


def is_choice(tree: Tree) -> bool:
    """Returns whether a tree is a sweep or a range, or a list, which may be one."""
    return is_range(tree) or swept_in(tree) is not None or isinstance(tree.value, list)


def range_of(tree: Tree) -> NumberRange:
    """Returns a range.

    Raises:
        ValueError: It is none; the text says why.
    """
    ends: Any = tree.items["range"].plain()
    log: Any = tree.items["log"].plain() if "log" in tree.items else False
    of_numbers = isinstance(ends, list) and all(type(e) in (int, float) for e in ends)
    if not of_numbers or len(ends) != 2 or not all(map(math.isfinite, ends)):  # noqa: PLR2004 -- ends
        raise ValueError(f"a range is [LOW, HIGH], two numbers, got {ends!r}")
    if log not in (True, False):
        raise ValueError(f"log must be true or false, got {log!r}")
    if not ends[0] < ends[1]:
        raise ValueError(f"a range begins with its low end, got {ends!r}")
    if log and ends[0] <= 0:
        raise ValueError(f"a range by its logarithm begins above 0, got {ends!r}")
    low, high = ends
    return NumberRange(low, high, bool(log), isinstance(low, int) and isinstance(high, int))
