"""Texts put into the order in which each makes the next one most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from leporello.combiners.algorithms.best_path import best_path
from leporello.combiners.algorithms.retry_halves import Attempt, attempt
from leporello.combiners.lists.ordering import answer, check_attempts, check_pairs, items
from leporello.core.protocols import Positive
from leporello.core.records import Combination, Example, Hit, Read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OrderByCoherence:
    """Reads each hit alone and behind each other one, and answers with the likeliest order.

    The reader gives passages log-likelihoods (`LogLikelihood`, `per_token: false`). What a hit
    gains from standing behind another is log p(both) - log p(one) - log p(other); the order is the
    path through all hits that gains most. It is the order in which the texts, each read with the
    one before it, are likeliest: what each is worth alone adds up to the same in every order.

    Numbers and hits are as in `OrderByPairs`. It takes n * n reads for n hits; what cannot be read
    gains nothing.

    Attributes:
        beam: Number of beginnings that are followed where there are more than 12 hits; up to these
            the path is the best there is.
        separator: Text between two hits.
    """

    beam: Positive = 100
    separator: str = "\n\n"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields n * n reads in one round; returns the order."""
        texts = items(example, hits)
        check_pairs(len(texts), "give larger chunks, or fewer of them")
        pairs = list(permutations(range(len(texts)), 2))
        both = [f"{texts[a].text}{self.separator}{texts[b].text}" for a, b in pairs]
        # Passages, not choices behind a prompt: 86 of a page each would be one batch (decision 23).
        alone = [Read((text,)) for text in texts] if pairs else []
        attempts = yield from attempt([*alone, *(Read((text,)) for text in both)])
        check_attempts(attempts)
        return answer(best_path(_gains(attempts, len(texts)), self.beam))


def _gains(attempts: Sequence[Attempt], count: int) -> NDArray[np.float64]:
    """Returns what the column's gains behind the row's, shape (count, count); 0 if unknown."""
    import numpy as np

    scores = [_score(result) for result in attempts]
    gains = np.zeros((count, count))
    for (one, other), both in zip(permutations(range(count), 2), scores[count:], strict=False):
        parts = both, scores[one], scores[other]
        if all(map(np.isfinite, parts)):
            gains[one, other] = parts[0] - parts[1] - parts[2]
    return gains


def _score(result: Attempt) -> float:
    if isinstance(result, Exception):
        return float("nan")
    if result.score is None:
        raise ValueError(
            "OrderByCoherence needs the log-likelihood of a passage, and this reader gives no"
            " score: use the reader LogLikelihood"
        )
    return result.score
