"""Exponential similarity of percentages, as ZeroSCROLLS computes it for SpaceDigest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import PERCENTAGE

# The benchmark's constant: an error of 10 points halves the score.
_HALVING = 10  # percentage points


@dataclass(frozen=True)
class ExponentialSimilarity(Averaged):
    """Closeness of the first percentage in the answer, halved for every ten points of difference.

    A percentage is digits directly followed by `%`; `60`, `60 %` and `60 percent` score 0.
    Signs are ignored: `-20%` is 20.
    """

    name: ClassVar[str] = "exponential_similarity"
    signature: ClassVar[str] = "exponential_similarity|base:0.5|points:10|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the similarity to the nearest reference, which must be a percentage."""
        gold = [_reference_percentage(example, reference) for reference in example.references]
        guess = _percentage(text)
        return 100 * (
            # An answer without `%` scores 0, as in the benchmark, whatever number it has.
            0.0 if guess is None else max(0.5 ** (abs(guess - p) / _HALVING) for p in gold)
        )

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- required by the protocol
        """Returns whether a text contains a percentage."""
        return _percentage(text) is not None


def _percentage(text: str) -> float | None:
    match = PERCENTAGE.search(text)
    return float(match[0].removesuffix("%")) if match else None


def _reference_percentage(example: Example, reference: str) -> float:
    percentage = _percentage(reference)
    if percentage is None:
        raise GoldError(example, f"the reference {reference!r:.80} has no percentage such as 60%")
    return percentage
