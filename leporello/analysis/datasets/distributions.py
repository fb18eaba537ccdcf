"""Many numbers as a few: mean, quantiles, a histogram."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

BINS = 20
_TAIL = 0.05


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie between each edge and the next; the last bin has its upper edge too."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Numbers, summed up.

    Attributes:
        count: Number of values.
        mean: Mean of the values.
        smallest: Smallest value.
        low: Quantile that a twentieth of them is smaller than.
        median: Median of the values.
        high: Quantile that a twentieth of them is larger than.
        largest: Largest value.
        histogram: Histogram in at most 20 bins.
    """

    count: int
    mean: float
    smallest: float
    low: float
    median: float
    high: float
    largest: float
    histogram: Histogram


def distribution(
    values: Sequence[float], edges: Sequence[float] | None = None
) -> Distribution | None:
    """Sums numbers up; None of none.

    Args:
        values: Values to sum up.
        edges: Edges of the histogram's bins, ascending, around all values; by default at most 20
            bins between multiples of 1, 2 or 5 times a power of ten, none finer than 1.
    """
    if not values:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Distribution(
        count=len(ordered),
        mean=fmean(ordered),
        smallest=ordered[0],
        low=ordered[math.floor(_TAIL * last)],
        median=median(ordered),
        high=ordered[math.ceil((1 - _TAIL) * last)],
        largest=ordered[-1],
        histogram=_histogram(ordered, edges or _edges(ordered[0], ordered[-1])),
    )


def _edges(smallest: float, largest: float) -> list[float]:
    power = 10 ** math.floor(math.log10(max((largest - smallest) / BINS, 1)))
    for step in (power, 2 * power, 5 * power, 10 * power, 20 * power):
        first = math.floor(smallest / step)
        count = math.floor(largest / step) + 1 - first
        if count <= BINS:
            break
    return [float((first + n) * step) for n in range(count + 1)]


def _histogram(ordered: Sequence[float], edges: Sequence[float]) -> Histogram:
    counts = [0] * (len(edges) - 1)
    for value in ordered:
        counts[min(bisect_right(edges, value), len(counts)) - 1] += 1
    return Histogram(tuple(edges), tuple(counts))
