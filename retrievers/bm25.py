"""BM25: term frequencies that saturate, weighed by rarity and by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.index.postings import (
    TermCounts,
    add_up,
    count_known,
    count_terms,
    pack,
    question_grams,
    term_ids,
)
from leporello.retrievers.index.ranking import best_chunks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BM25"]

# A term in more than half of the chunks has a negative idf; it gets this share of the mean idf.
_FLOOR = 0.25


@dataclass(frozen=True)
class BM25:
    """Okapi BM25 with the scores of `rank_bm25.BM25Okapi` (Trotman et al. 2014), in one product.

    What a term adds to a chunk does not depend on the question, so these weights are computed
    once a document, where rank_bm25 looks up every term of every question in every chunk.

    Attributes:
        k: Number of chunks a question gets.
        k1: Saturation: how slowly repetitions of a term saturate; 0 counts only whether it stands
            there.
        b: Length penalty: how much long chunks are marked down; 0 not at all.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k",)

    k: Positive = 10
    k1: NonNegative = 1.5
    b: Share = 0.75

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest scores for each question."""
        return self.search(self.index(chunks), questions, chunks)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns what each term adds to each chunk."""
        counts, ids = count_terms([chunk.text for chunk in chunks])
        weights = self._weights(counts, len(chunks)) if ids else counts.counts
        return pack(counts, weights, ids)

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks for each question, by the index of these chunks."""
        queries = count_known(map(question_grams, questions), term_ids(index))
        scores = add_up(index, queries, queries.counts, (len(questions), len(chunks)))
        return best_chunks(scores, chunks, self.k)

    def _weights(self, bags: TermCounts, chunks: int) -> NDArray[np.float64]:
        """Returns the weight of each count in so many chunks."""
        import numpy as np

        lengths = np.bincount(bags.texts, bags.counts, minlength=chunks)
        discount = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        saturated = bags.counts * (self.k1 + 1) / (bags.counts + discount[bags.texts])
        weights: NDArray[np.float64] = saturated * _idf(bags, chunks)[bags.terms]
        return weights


def _idf(bags: TermCounts, chunks: int) -> NDArray[np.float64]:
    import numpy as np

    holding = np.bincount(bags.terms)
    idf: NDArray[np.float64] = np.log(chunks - holding + 0.5) - np.log(holding + 0.5)
    return np.where(idf < 0, _FLOOR * idf.mean(), idf)
