"""Summarises numbers as mean, quantiles and a histogram."""

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
    """Numbers of values between adjacent edges; the last bin includes its upper edge."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Summary of numbers."""

    count: int
    mean: float
    smallest: float
    low: float  # 5 % quantile
    median: float
    high: float  # 95 % quantile
    largest: float
    histogram: Histogram  # histogram in at most 20 bins


def distribution(
    values: Sequence[float], edges: Sequence[float] | None = None
) -> Distribution | None:
    """Returns the summary of numbers; None without numbers.

    The edges of the histogram's bins must ascend and enclose all values. By default there are at
    most 20 bins, at multiples of 1, 2 or 5 times a power of ten, at least 1 wide.
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
