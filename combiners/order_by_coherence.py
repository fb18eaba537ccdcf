"""Orders texts so that each makes the next one most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from operator import itemgetter
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from leporello.combiners.lists.ordering import answer, check_failed, check_pairs, items
from leporello.core.errors import ReadError
from leporello.core.protocols import Positive
from leporello.core.records import Combination, Example, Hit, Read, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 12  # largest number of texts for which the search is exact, over 2 ** 12 sets


@dataclass(frozen=True)
class OrderByCoherence:
    """Reads each hit alone and after each other hit, and answers with the likeliest order.

    The reader returns log-likelihoods of passages (`LogLikelihood`, `per_token: false`). The gain
    of a hit after another is log p(both) - log p(first) - log p(second); the answer is the path
    through all hits with the largest sum of gains. It maximises the likelihood of the texts, each
    read after its predecessor, since the likelihoods of single texts have the same sum in every
    order.

    Numbers and hits are those of `OrderByPairs`. n hits need n * n reads; failed reads gain 0.

    Attributes:
        beam: Number of partial paths in the search for more than 12 hits; for fewer, the search is
            exact.
        separator: Text between two hits.
    """

    # A failed read gains 0, since one of n * n reads must not lose the order (decision 23).
    takes_failed_reads: ClassVar[bool] = True
    beam: Positive = 100  # beyond 12 texts, since an exact search of 86 texts has 2 ** 86 sets
    # A blank line, as between the paragraphs of the texts that models are trained on.
    separator: str = "\n\n"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields n * n reads in one round; returns the order."""
        texts = items(example, hits)
        check_pairs(len(texts), "use larger or fewer chunks")
        pairs = list(permutations(range(len(texts)), 2))
        both = [f"{texts[a].text}{self.separator}{texts[b].text}" for a, b in pairs]
        # Passages, since 86 pages as choices after one prompt would form one batch (decision 23).
        alone = [Read((text,)) for text in texts] if pairs else []
        outputs = yield [*alone, *(Read((text,)) for text in both)]
        check_failed(outputs)
        return answer(best_path(_gains(outputs, len(texts)), self.beam))


# The negative sum and the places of a path, by the set of its places and its end.
_Paths: TypeAlias = dict[tuple[int, int], tuple[float, tuple[int, ...]]]


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


def best_path(steps: NDArray[np.float64], beam: int) -> list[int]:
    """Returns the path with the largest sum of steps; ties go to the lexicographically first.

    A step leads from the row's place to the column's. Up to 12 places, the partial paths through
    all sets are kept, so the result is exact (Held and Karp 1962); beyond, only the best `beam`.
    """
    gains = steps.tolist()
    # Only the best of the paths through the same items with the same end needs to be extended.
    paths: _Paths = {(1 << item, item): (0.0, (item,)) for item in range(len(gains))}
    for _ in range(len(gains) - 1):
        longer: _Paths = {}
        for (members, last), (negative_sum, path) in paths.items():
            for item, gain in enumerate(gains[last]):
                if not members >> item & 1:
                    # Negative, so that the tuple's order prefers large sums, then the given order.
                    extended = round(negative_sum - gain, 9), (*path, item)
                    end = members | 1 << item, item
                    if end not in longer or extended < longer[end]:
                        longer[end] = extended
        if len(gains) > _EXACT:
            longer = dict(sorted(longer.items(), key=itemgetter(1))[:beam])
        paths = longer
    return [*min(paths.values())[1]] if paths else []
