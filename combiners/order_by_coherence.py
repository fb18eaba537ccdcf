"""Orders texts so that each makes the next one most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

from leporello.combiners.lists.ordering import (
    answer,
    best_order,
    check_failed,
    check_pairs,
    items,
)
from leporello.core.errors import ReadError
from leporello.core.records import Combination, Example, Hit, Read, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OrderByCoherence:
    """Reads each hit alone and after each other hit, and answers with the likeliest order.

    The reader returns log-likelihoods of passages (`LogLikelihood`, `per_token: false`). The gain
    of a hit after another is log p(both) - log p(first) - log p(second); the answer is the path
    through all hits with the largest sum of gains. It maximises the likelihood of the texts, each
    read after its predecessor, since the likelihoods of single texts have the same sum in every
    order.

    Numbers and hits are those of `OrderByPairs`. n hits need n * n reads; failed reads gain 0. The
    search is exact for up to 12 hits.
    """

    # A failed read gains 0, since one of n * n reads must not lose the order (decision 23).
    takes_failed_reads: ClassVar[bool] = True

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields n * n reads in one round; returns the order."""
        texts = items(example, hits)
        check_pairs(len(texts), "use larger or fewer chunks")
        pairs = list(permutations(range(len(texts)), 2))
        # A blank line, as between the paragraphs of the texts that models are trained on.
        both = [f"{texts[a].text}\n\n{texts[b].text}" for a, b in pairs]
        # Passages, since 86 pages as choices after one prompt would form one batch (decision 23).
        alone = [Read((text,)) for text in texts] if pairs else []
        outputs = yield [*alone, *(Read((text,)) for text in both)]
        check_failed(outputs)
        return answer(best_order(_gains(outputs, len(texts))))


def _gains(outputs: Sequence[Reply], count: int) -> NDArray[np.float64]:
    """Returns the gains of the column's text after the row's, shape (n, n); 0 if unknown."""
    import numpy as np

    scores = [_score(reply) for reply in outputs]
    gains = np.zeros((count, count))
    for (row, column), both in zip(permutations(range(count), 2), scores[count:], strict=False):
        parts = both, scores[row], scores[column]
        if all(map(np.isfinite, parts)):
            # The sum of these gains is the likelihood of the order without the texts' own ones,
            # whose sum is the same in every order (decision 23).
            gains[row, column] = parts[0] - parts[1] - parts[2]
    return gains


def _score(reply: Reply) -> float:
    if isinstance(reply, ReadError):
        return float("nan")
    if reply.score is None:
        raise ValueError(
            "OrderByCoherence needs log-likelihoods of passages, but this reader returns no scores:"
            " use the reader LogLikelihood"
        )
    return reply.score
