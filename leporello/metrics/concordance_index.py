"""Concordance index of an order, as ZeroSCROLLS computes it for BookSumSort."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, GoldError, Statistics

_NO_NUMBER = re.compile(r"[^0-9\s,]")


@dataclass(frozen=True)
class ConcordanceIndex(Averaged):
    """The share of pairs of summaries that the answer puts in the right order.

    Digits, blanks and commas of the answer are read, all else is deleted: `3-1-2` is 312. Unless
    the numbers are those of the reference, each once, the answer scores 0, so any stray number
    spoils it. Without ties, as here, this is the index of `lifelines`.
    """

    name: ClassVar[str] = "concordance_index"
    signature: ClassVar[str] = "concordance_index|other-ids:0|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `concordance_index`, or None where there are no references.

        Raises:
            GoldError: A reference with fewer than two ids, or one of them twice.
        """
        if not example.references:
            return None
        orders = [_wanted(example, text) for text in example.references]
        answer = _ids(prediction.prediction)
        return {self.name: 100 * max(_concordance(order, answer) for order in orders)}

    def parses(self, text: str, example: Example) -> bool:
        """Says whether a text holds the ids of a reference, in whatever order.

        Raises:
            GoldError: As `statistics` does.
        """
        ids = sorted(_ids(text))
        return any(sorted(_wanted(example, order)) == ids for order in example.references)


def _ids(text: str) -> list[str]:
    """Returns the numbers without leading zeros; as text, since they may have any length."""
    numbers = _NO_NUMBER.sub("", text).replace(",", " ").split()
    return [number.lstrip("0") or "0" for number in numbers]


def _wanted(example: Example, reference: str) -> list[str]:
    ids = _ids(reference)
    if len(ids) < 2 or len(set(ids)) < len(ids):  # noqa: PLR2004 -- a pair, to be in any order
        raise GoldError(
            example, f"the reference {reference!r:.80} is no order of two or more different ids"
        )
    return ids


def _concordance(order: Sequence[str], ids: Sequence[str]) -> float:
    if sorted(order) != sorted(ids):
        return 0.0
    ranks = {number: n for n, number in enumerate(ids)}
    pairs = [ranks[first] < ranks[second] for first, second in combinations(order, 2)]
    return sum(pairs) / len(pairs)
