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
    """Share of the pairs of summaries that the answer puts in the right order.

    Only digits, blanks and commas of the answer are read: `3-1-2` is 312. The answer scores 0
    unless it contains exactly the numbers of the reference, so any stray number spoils it. Without
    ties, as here, this is the index of `lifelines`.
    """

    name: ClassVar[str] = "concordance_index"
    signature: ClassVar[str] = "concordance_index|other-ids:0|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the index for the best reference.

        Raises:
            GoldError: A reference has fewer than two ids, or repeats an id.
        """
        orders = [_reference_order(example, reference) for reference in example.references]
        # The best reference, as in the benchmark's code.
        return 100 * max(_concordance(order, ids(text)) for order in orders)

    def parses(self, text: str, example: Example) -> bool:
        """Returns whether a text contains the ids of a reference in any order.

        Raises:
            GoldError: A reference has fewer than two ids, or repeats an id.
        """
        answer = sorted(ids(text))
        return any(
            sorted(_reference_order(example, order)) == answer for order in example.references
        )


def _reference_order(example: Example, reference: str) -> list[str]:
    order = ids(reference)
    if len(order) < 2 or len(set(order)) < len(order):  # noqa: PLR2004 -- an order needs a pair
        raise GoldError(
            example, f"the reference {reference!r:.80} is not an order of two or more different ids"
        )
    return order


def _concordance(order: Sequence[str], answer: Sequence[str]) -> float:
    # An answer with other numbers scores 0, as in ZeroSCROLLS; so combiners always return all.
    if sorted(order) != sorted(answer):
        return 0.0
    ranks = {number: n for n, number in enumerate(answer)}
    pairs = [ranks[first] < ranks[second] for first, second in combinations(order, 2)]
    return sum(pairs) / len(pairs)
