"""From scores to hits: best first, equal scores in document order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from leporello.core.records import Chunk, Hit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ByIndex:
    """A retriever whose index of chunks is kept: it offers `index` and `search`."""

    def index(self, chunks: Sequence[Chunk]) -> Any:  # noqa: ANN401 -- any index
        """Returns what `search` needs of these chunks."""
        raise NotImplementedError

    def search(
        self,
        index: Any,  # noqa: ANN401 -- as above
        questions: Sequence[str],
        chunks: Sequence[Chunk],
    ) -> list[list[Hit]]:
        """Returns the hits of each question, by the index of these chunks."""
        raise NotImplementedError

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each question."""
        return self.search(self.index(chunks), questions, chunks)


def best_chunks(
    blocks: Iterable[NDArray[np.floating[Any]]], chunks: Sequence[Chunk], k: int
) -> list[list[Hit]]:
    """Returns the k best chunks of each question, by blocks of (some questions, chunks) scores."""
    return [
        [Hit(chunks[i], score) for i, score in zip(best.tolist(), row[best].tolist(), strict=True)]
        for rows in blocks
        for row in rows
        for best in (_best(row, k),)
    ]


def _best(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Returns where the k highest scores stand, best first, equal ones in their order."""
    import numpy as np

    ranks = -scores
    if k >= len(ranks):
        return ranks.argsort(kind="stable")
    worst = np.partition(ranks, k - 1)[k - 1]
    good = np.flatnonzero(
        ~(ranks > worst)
    )  # k of them, and those equal to the last; NaN sorts last
    best: NDArray[np.intp] = good[ranks[good].argsort(kind="stable")[:k]]
    return best


def in_order(hits: Iterable[Hit]) -> list[Hit]:
    """Returns hits best first; equal scores by where they stand in the document."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.start, hit.chunk.end))
