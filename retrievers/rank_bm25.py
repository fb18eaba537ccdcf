"""BM25 by the library rank_bm25, the reference implementation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import Chunk, Hit
from leporello.retrievers.index.postings import ByIndex, best_chunks
from leporello.text.tokens import terms

if TYPE_CHECKING:
    from rank_bm25 import BM25 as Scorer  # noqa: N811 -- BM25 is another retriever here


@dataclass(frozen=True)
class RankBM25(ByIndex):
    """Okapi BM25, BM25+ and BM25L by the library rank_bm25, for identical scores.

    `BM25` is several times as fast, and has another idf: the library's Okapi gives a term in half
    of the chunks the weight 0. Hits may have such a score, or a negative one. Terms are those of
    `BM25`.

    Attributes:
        k: Number of hits per question.
        variant: Formula: `okapi`, `plus` (BM25+) or `l` (BM25L). The latter two (Lv and Zhai 2011)
            penalise long chunks less.
        k1: Saturation; see `BM25`.
        b: Length penalty; see `BM25`.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k",)

    k: Positive = 10
    variant: Literal["okapi", "plus", "l"] = "okapi"
    k1: NonNegative = 1.5
    b: Share = 0.75

    def index(self, chunks: Sequence[Chunk]) -> Scorer | None:
        """Returns the library's index; None without terms, for which it would raise."""
        import rank_bm25

        classes = {
            "okapi": rank_bm25.BM25Okapi,
            "plus": rank_bm25.BM25Plus,
            "l": rank_bm25.BM25L,
        }
        # Our terms rather than a split at blanks, so that scores can be compared with `BM25`.
        bags = [terms(chunk.text) for chunk in chunks]
        return classes[self.variant](bags, k1=self.k1, b=self.b) if any(bags) else None

    def search(
        self, index: Scorer | None, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks for each question, using the index of these chunks."""
        import numpy as np

        if index is None:
            return best_chunks(np.zeros((1, len(questions), len(chunks))), chunks, self.k)
        with np.errstate(invalid="ignore"):  # it divides 0 by 0 for a chunk without terms
            scores = (np.nan_to_num(index.get_scores(terms(question))) for question in questions)
            return best_chunks((row[None] for row in scores), chunks, self.k)
