"""What a metric is: statistics of one example, and what they come to over many."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Protocol, TypeAlias

from leporello.records import Example, Prediction

__all__ = ["Metric", "Statistics", "means"]

# Numbers of one example, JSON-able; by them alone it enters any aggregate.
Statistics: TypeAlias = dict[str, float]

_DIGITS = 4  # SCROLLS rounds its scores so


class Metric(Protocol):
    """Scores in two steps, so that totals, per-example scores and the bootstrap share one pass."""

    @property
    def name(self) -> str:
        """Of the metric, as tasks list it."""
        ...

    @property
    def signature(self) -> str:
        """What exactly is computed: options and versions, in the manner of sacreBLEU."""
        ...

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the numbers of one example; None where it has nothing to be scored against.

        A failure is scored as an empty prediction.
        """
        ...

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example, 0 to 100."""
        ...

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns named scores over all examples, 0 to 100, four decimals; none of none."""
        ...


def means(statistics: Sequence[Statistics]) -> dict[str, float]:
    """Returns the mean of each number, rounded as scores are."""
    names = statistics[0] if statistics else ()
    return {name: round(fmean(s[name] for s in statistics), _DIGITS) for name in names}
