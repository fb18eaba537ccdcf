"""Exponential similarity of percentages, as ZeroSCROLLS computes it for SpaceDigest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import PERCENTAGE

_HALVING = 10  # percentage points


@dataclass(frozen=True)
class ExponentialSimilarity(Averaged):
    """How near the first percentage in the answer is: half for every ten points that it is off.

    A percentage is digits with a `%` directly behind them; `60`, `60 %` and `60 percent` are none
    and score 0. Signs are not read: `-20%` is 20.
    """

    name: ClassVar[str] = "exponential_similarity"
    signature: ClassVar[str] = "exponential_similarity|base:0.5|points:10|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the similarity to the nearest reference; raises GoldError for one without any."""
        gold = [_wanted(example, reference) for reference in example.references]
        guess = _percentage(text)
        return 100 * (
            0.0 if guess is None else max(0.5 ** (abs(guess - p) / _HALVING) for p in gold)
        )

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- of the protocol
        """Says whether a text has a percentage."""
        return _percentage(text) is not None


def _percentage(text: str) -> float | None:
    match = PERCENTAGE.search(text)
    return float(match[0].removesuffix("%")) if match else None


def _wanted(example: Example, reference: str) -> float:
    percentage = _percentage(reference)
    if percentage is None:
        raise GoldError(example, f"the reference {reference!r:.80} has no percentage such as 60%")
    return percentage
