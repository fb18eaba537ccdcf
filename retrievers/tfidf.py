"""TF-IDF: the cosine of a question's and a chunk's weighted terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.calls import Index
from leporello.records import Chunk, Hit
from leporello.stages import Positive
from retrievers.ranking import best_chunks
from retrievers.term_counts import count_known, count_terms, grams, pack, unpack

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import TfidfTransformer

__all__ = ["TfIdf"]


@dataclass(frozen=True)
class TfIdf:
    """TF-IDF fitted on the document's own chunks, as in MuLD (Hudson and Al Moubayed 2022, sec. 4).

    The weights are scikit-learn's (smoothed idf, L2 norm); the terms are
    `leporello.tokens.terms`, which also finds words where a script has no spaces. The document is
    weighed once, and all its questions are answered by one sparse product.

    Attributes:
        k: How many chunks a question gets.
        sublinear: Weigh a term that stands n times in a chunk as 1 + ln n.
        ngrams: Longest run of terms that counts as a term of its own; 2 adds pairs.
    """

    k: Positive = 10
    sublinear: bool = False
    ngrams: Positive = 1

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks nearest to each question; scores are cosines, 0 to 1."""
        return self.search(self.index(chunks), questions, chunks)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the chunks' weights, of shape (chunks, terms), and the terms' idf."""
        counts, columns = count_terms(grams(chunk.text, self.ngrams) for chunk in chunks)
        if not columns:
            return pack(counts, columns)
        weigh = self._transformer().fit(counts)
        return {**pack(weigh.transform(counts), columns), "idf": weigh.idf_}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k chunks nearest to each question, by the index of these chunks."""
        weights, columns = unpack(index)
        queries = count_known((grams(question, self.ngrams) for question in questions), columns)
        if queries.nnz:
            weigh = self._transformer()
            weigh.idf_ = index["idf"]
            queries = weigh.transform(queries)
        return best_chunks((weights @ queries.T).toarray().T, chunks, self.k)

    def _transformer(self) -> TfidfTransformer | Any:  # noqa: ANN401 -- scikit-learn has no types
        from sklearn.feature_extraction.text import TfidfTransformer

        return TfidfTransformer(sublinear_tf=self.sublinear)
