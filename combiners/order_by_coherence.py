"""Texts put into the order in which each makes the next one most likely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

from leporello.combiners.lists.ordering import answer, check_failed, check_pairs, items
from leporello.core.errors import ReadError
from leporello.core.protocols import Positive
from leporello.core.records import Combination, Example, Hit, Read, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EXACT = 12  # of so many, the best path from each place through each of 2 ** 12 sets is found
_CRUMB = 1e-9  # what sums of floats differ by, though they are equal


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

    takes_failed_reads: ClassVar[bool] = True
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
        outputs = yield [*alone, *(Read((text,)) for text in both)]
        check_failed(outputs)
        return answer(best_path(_gains(outputs, len(texts)), self.beam))


def _gains(outputs: Sequence[Reply], count: int) -> NDArray[np.float64]:
    """Returns what the column's gains behind the row's, shape (count, count); 0 if unknown."""
    import numpy as np

    scores = [_score(result) for result in outputs]
    gains = np.zeros((count, count))
    for (one, other), both in zip(permutations(range(count), 2), scores[count:], strict=False):
        parts = both, scores[one], scores[other]
        if all(map(np.isfinite, parts)):
            gains[one, other] = parts[0] - parts[1] - parts[2]
    return gains


def _score(result: Reply) -> float:
    if isinstance(result, ReadError):
        return float("nan")
    if result.score is None:
        raise ValueError(
            "OrderByCoherence needs the log-likelihood of a passage, and this reader gives no"
            " score: use the reader LogLikelihood"
        )
    return result.score


def best_path(steps: NDArray[np.float64], beam: int) -> list[int]:
    """Returns the order with the largest sum of steps; of equals the first one as words sort.

    A step goes from the row's place straight to the column's. It is exact for up to 12 places (Held
    and Karp 1962); for more, so many beginnings of paths are kept.
    """
    if not len(steps):
        return []
    return _exact(steps) if len(steps) <= _EXACT else _by_beam(steps, beam)


def _exact(steps: NDArray[np.float64]) -> list[int]:
    import numpy as np

    count = len(steps)
    # Of paths through a set: the best that begins at each place, shape (sets, count).
    best = np.full((1 << count, count), -np.inf)
    for members in range(1, 1 << count):
        for item in (item for item in range(count) if members >> item & 1):
            rest = members ^ 1 << item
            best[members, item] = (steps[item] + best[rest]).max() if rest else 0.0
    members, path = (1 << count) - 1, [_first_of(best[-1])]
    while members := members ^ 1 << path[-1]:
        path.append(_first_of(steps[path[-1]] + best[members]))
    return path


def _first_of(values: NDArray[np.float64]) -> int:
    """Returns the first place with the largest value."""
    return int((values >= values.max() - _CRUMB).argmax())


def _by_beam(steps: NDArray[np.float64], beam: int) -> list[int]:
    worth = steps.tolist()
    paths: list[tuple[float, tuple[int, ...]]] = [(0.0, (item,)) for item in range(len(worth))]
    for _ in range(len(worth) - 1):
        # Of those that have the same behind them and end alike only the best can lead on.
        longer: dict[tuple[frozenset[int], int], tuple[float, tuple[int, ...]]] = {}
        for negated, path in paths:
            behind = frozenset(path)
            for item in (item for item in range(len(worth)) if item not in behind):
                grown = round(negated - worth[path[-1]][item], 9), (*path, item)
                key = behind, item
                longer[key] = min(longer.get(key, grown), grown)
        paths = sorted(longer.values())[:beam]
    return [*min(paths)[1]]
