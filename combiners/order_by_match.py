"""Texts put into the order of their places in the document, which retrieval finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from annotated_types import Gt

from leporello.combiners.lists.ordering import answer, most_agreed
from leporello.core.notes import note
from leporello.core.records import Combination, Example, Hit, Search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OrderByMatch:
    """Searches the document for each of the example's choices; answers with their order: `3, 1, 2`.

    A choice is taken to stand where one of its hits does, with probabilities like
    score ** sharpness: so the best hit counts most, and the next ones as far as they are as good.
    The answer is the order in which most pairs are to be expected the right way round. Hits with
    scores of 0 or less do not count. A choice without any that does might stand anywhere, which
    puts it between those at either end; that is noted. Nothing is read.

    Attributes:
        sharpness: Exponent of the scores: how much better hits outweigh others; 1 is in proportion
            to the scores.
    """

    # Not tuned: between 4 and 16 it hardly matters (decision 23).
    sharpness: Annotated[float, Gt(0)] = 8.0

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- as every combiner's
        """Yields a search a choice, all in one round; returns the order.

        Raises:
            ValueError: The example has no choices.
        """
        if not example.choices:
            raise ValueError(
                f"OrderByMatch finds an example's choices in its document, and {example.id!r} has"
                " none; for parts of the document itself use OrderByPairs or OrderByCoherence"
            )
        hits_by_choice = yield [Search(choice) for choice in example.choices]
        return answer(most_agreed(self._earlier(hits_by_choice)))

    def _earlier(self, hits_by_choice: Sequence[Sequence[Hit]]) -> NDArray[np.float64]:
        """Returns the probabilities that the row's stands before the column's; half if with it."""
        import numpy as np

        counted = [[hit for hit in hits if hit.score > 0] for hits in hits_by_choice]
        if not all(counted):
            note("OrderByMatch found no place for some of the texts: these might stand anywhere")
        middles = {_middle(hit) for hits in counted for hit in hits}
        column = {middle: number for number, middle in enumerate(sorted(middles))}
        # Probabilities of places: means of places pull every text to the middle (decision 23).
        likely = np.zeros((len(hits_by_choice), max(len(column), 1)))
        for row, hits in enumerate(counted):
            best = max((hit.score for hit in hits), default=1.0)
            for hit in hits:
                likely[row, column[_middle(hit)]] += (hit.score / best) ** self.sharpness
        likely[[not hits for hits in counted]] = 1.0
        likely /= likely.sum(axis=1, keepdims=True)
        behind = 1 - likely.cumsum(axis=1)
        earlier: NDArray[np.float64] = likely @ behind.T + likely @ likely.T / 2
        return earlier


def _middle(hit: Hit) -> int:
    """Returns twice where the middle of a hit is, in characters."""
    return hit.chunk.start + hit.chunk.end
