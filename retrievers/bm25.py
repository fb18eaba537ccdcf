"""BM25: term frequencies that saturate, weighed by rarity and by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

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
from leporello.retrievers.index.segments import SegmentedPostings, segment

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    join_only: ClassVar[tuple[str, ...]] = ("k1", "b")  # which segments do not depend on

    k: Positive = 10
    k1: NonNegative = 1.5
    b: Share = 0.75

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest scores for each question."""
        return self.search(self.index(chunks), questions, chunks)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns what each term adds to each chunk."""
        import numpy as np

        counts, ids = count_terms([chunk.text for chunk in chunks])
        lengths = np.bincount(counts.texts, counts.counts, minlength=len(chunks))
        holding = np.bincount(counts.terms)
        return pack(counts, self._weights(counts, lengths, holding, holding), ids)

    def segment(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the counts of one file of a collection, for `join`."""
        return segment(*count_terms([chunk.text for chunk in chunks]), len(chunks))

    def join(self, segments: Sequence[Index]) -> SegmentedPostings:
        """Returns the index of a collection; of it `search` weighs only what questions name."""
        return SegmentedPostings.of(segments)

    def search(
        self, index: Index | SegmentedPostings, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks for each question, by the index of these chunks."""
        import numpy as np

        if isinstance(index, SegmentedPostings):
            asked = [*dict.fromkeys(chain.from_iterable(map(question_grams, questions)))]
            counts = index.counts_of(asked)
            holding = np.bincount(counts.terms, minlength=len(asked))
            weights = self._weights(counts, index.lengths, holding, index.holding)
            index = pack(counts, weights, {term: number for number, term in enumerate(asked)})
        queries = count_known(map(question_grams, questions), term_ids(index))
        scores = add_up(index, queries, queries.counts, (len(questions), len(chunks)))
        return best_chunks(scores, chunks, self.k)

    def _weights(
        self,
        bags: TermCounts,
        lengths: NDArray[Any],
        holding: NDArray[np.int64],
        all_holding: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Returns the weight of each count.

        Args:
            bags: Counts of terms in chunks.
            lengths: Number of terms of each chunk.
            holding: Number of chunks that hold each of the terms that are counted.
            all_holding: The same of all terms that there are, in any order.
        """
        import numpy as np

        if not len(bags.counts):
            return bags.counts
        discount = self.k1 * (1 - self.b + self.b * lengths / lengths.mean())
        saturated = bags.counts * (self.k1 + 1) / (bags.counts + discount[bags.texts])
        floor = _FLOOR * _idf(all_holding, len(lengths)).mean()
        idf = _idf(holding, len(lengths))
        weights: NDArray[np.float64] = saturated * np.where(idf < 0, floor, idf)[bags.terms]
        return weights


def _idf(holding: NDArray[np.int64], chunks: int) -> NDArray[np.float64]:
    import numpy as np

    idf: NDArray[np.float64] = np.log(chunks - holding + 0.5) - np.log(holding + 0.5)
    return idf
