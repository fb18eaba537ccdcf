"""Concordance index of an order, as ZeroSCROLLS computes it for BookSumSort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import ids


@dataclass(frozen=True)
class ConcordanceIndex(Averaged):
    """The share of pairs of summaries that the answer puts in the right order.

    Digits, blanks and commas of the answer are read, all else is deleted: `3-1-2` is 312. Unless
    the numbers are those of the reference, each once, the answer scores 0, so any stray number
    spoils it. Without ties, as here, this is the index of `lifelines`.
    """

    name: ClassVar[str] = "concordance_index"
    signature: ClassVar[str] = "concordance_index|other-ids:0|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the index for the best reference.

        Raises:
            GoldError: A reference with fewer than two ids, or one of them twice.
        """
        orders = [_wanted(example, reference) for reference in example.references]
        return 100 * max(_concordance(order, ids(text)) for order in orders)

    def parses(self, text: str, example: Example) -> bool:
        """Says whether a text holds the ids of a reference, in whatever order.

        Raises:
            GoldError: As `value` does.
        """
        found = sorted(ids(text))
        return any(sorted(_wanted(example, order)) == found for order in example.references)


def _wanted(example: Example, reference: str) -> list[str]:
    order = ids(reference)
    if len(order) < 2 or len(set(order)) < len(order):  # noqa: PLR2004 -- a pair, to be in any order
        raise GoldError(
            example, f"the reference {reference!r:.80} is no order of two or more different ids"
        )
    return order


def _concordance(order: Sequence[str], answer: Sequence[str]) -> float:
    if sorted(order) != sorted(answer):
        return 0.0
    ranks = {number: n for n, number in enumerate(answer)}
    pairs = [ranks[first] < ranks[second] for first, second in combinations(order, 2)]
    return sum(pairs) / len(pairs)
