"""TF-IDF, and BM25 by the library rank_bm25: retrievers with another library's scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.postings import (
    TermCounts,
    add_up,
    best_chunks,
    count_known,
    count_terms,
    grams,
    matching,
    pack,
    packed_terms,
    retrieve_by_index,
    term_ids,
)
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rank_bm25 import BM25 as Scorer  # noqa: N811 -- BM25 is another retriever here


@dataclass(frozen=True)
class TfIdf:
    """TF-IDF fitted on the document's chunks, as in MuLD (Hudson and Al Moubayed 2022, sec. 4).

    Weights are those of scikit-learn (smoothed idf, L2 norm), or are computed by it. The weights of
    a document are computed once for all its questions. Chunks without a term of the question are
    not hits. A question without terms returns the first k chunks.

    Attributes:
        k: Number of hits per question.
        terms: Kind of terms: `leporello` uses words of any script, like `BM25`; `scikit-learn` uses
            its `TfidfVectorizer` with its defaults, whose terms have at least two letters. It does
            not fold letters: `café` with a combining accent is another word than without.
        ngrams: Maximum number of successive terms that form a further term; 2 adds pairs.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k",)
    retrieve = retrieve_by_index

    # MuLD's ten, which contain 84.7 % of HotpotQA's evidence with these terms (decision 17).
    k: Positive = 10
    ngrams: Positive = 1
    # Words of any script by default. `scikit-learn` finds its top ten for 362 of 362 questions,
    # where these terms find them for 93, so MuLD's pipelines use it (decision 17).
    terms: Literal["leporello", "scikit-learn"] = "leporello"

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the weight of each term in each chunk, and the terms' idf."""
        import numpy as np

        texts = [chunk.text for chunk in chunks]
        if self.terms == "scikit-learn":
            return self._fitted(texts)
        # No stop words, as by default in scikit-learn (decision 17).
        counts, ids = count_terms(texts, self.ngrams)
        # Smoothed like scikit-learn's, over only this document's chunks, as in MuLD (decision 6).
        idf = np.log((len(chunks) + 1) / (np.bincount(counts.terms) + 1.0)) + 1
        return {**pack(counts, _weights(counts, idf), ids), "idf": idf}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k chunks nearest to each question; scores are cosines, 0 to 1."""
        packed: Any = index
        if self.terms == "scikit-learn":
            bags = [*map(self._vectorizer().build_analyzer(), questions)]
            queries = self._transformed(packed, questions)
        else:
            bags = [grams(question, self.ngrams) for question in questions]
            counts = count_known(bags, term_ids(index))
            queries = [_weighted(query, packed["idf"]) for query in counts]
        scores = add_up(index, queries, len(chunks))
        return matching(best_chunks(scores, chunks, self.k), bags, "TfIdf")

    def _vectorizer(self, vocabulary: Mapping[str, int] | None = None) -> Any:  # noqa: ANN401 -- scikit-learn has no types
        from sklearn.feature_extraction.text import TfidfVectorizer

        return TfidfVectorizer(vocabulary=vocabulary, ngram_range=(1, self.ngrams))

    def _fitted(self, texts: Sequence[str]) -> Index:
        import numpy as np
        from scipy.sparse import csc_matrix

        vectorizer = self._vectorizer()
        weights, terms, idf = csc_matrix((len(texts), 0)), np.array([], str), np.zeros(0)
        if any(map(vectorizer.build_analyzer(), texts)):  # without terms it raises an error
            weights = vectorizer.fit_transform(texts).tocsc()
            terms, idf = vectorizer.get_feature_names_out(), vectorizer.idf_
        ids = {term: number for number, term in enumerate(terms.tolist())}
        return {**packed_terms(weights.data, weights.indices, weights.indptr, ids), "idf": idf}

    def _transformed(self, index: Index, questions: Sequence[str]) -> list[dict[int, float]]:
        """Returns the weights of each question's terms."""
        ids = term_ids(index)
        if not ids:  # no chunk has a term
            return [{} for _ in questions]
        vectorizer = self._vectorizer(ids)
        vectorizer.idf_ = index["idf"]
        rows = vectorizer.transform(questions)
        terms, weights = rows.indices.tolist(), rows.data.tolist()
        bounds = pairwise(rows.indptr.tolist())
        return [dict(zip(terms[a:b], weights[a:b], strict=True)) for a, b in bounds]


def _weighted(counts: Mapping[int, int], idf: NDArray[np.float64]) -> dict[int, float]:
    """Returns the weights of one question's terms."""
    import numpy as np

    terms = sorted(counts)
    numbers = np.array([[0, term, counts[term]] for term in terms], np.int64).reshape(-1, 3).T
    weights = _weights(TermCounts(numbers[0], numbers[1], numbers[2].astype(np.float64)), idf)
    return dict(zip(terms, weights.tolist(), strict=True))


def _weights(bags: TermCounts, idf: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the weights of counts as scikit-learn's transformer does, normalised per text."""
    import numpy as np

    weights: NDArray[np.float64] = bags.counts * idf[bags.terms]
    lengths = np.sqrt(np.bincount(bags.texts, weights * weights))
    return weights / lengths[bags.texts]


@dataclass(frozen=True)
class RankBM25:
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
    retrieve = retrieve_by_index

    k: Positive = 10
    variant: Literal["okapi", "plus", "l"] = "okapi"
    k1: NonNegative = 1.5
    b: Share = 0.75

    def index(self, chunks: Sequence[Chunk]) -> Scorer | None:
        """Returns the library's index; None without terms, for which it would raise."""
        import rank_bm25

        classes = {"okapi": rank_bm25.BM25Okapi, "plus": rank_bm25.BM25Plus, "l": rank_bm25.BM25L}
        # Our terms rather than a split at blanks, so that scores can be compared with `BM25`.
        bags = [terms(chunk.text) for chunk in chunks]
        return classes[self.variant](bags, k1=self.k1, b=self.b) if any(bags) else None

    def search(
        self, index: Scorer | None, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks for each question, using the index of these chunks."""
        import numpy as np

        if index is None:
            return best_chunks(np.zeros((len(questions), len(chunks))), chunks, self.k)
        with np.errstate(invalid="ignore"):  # it divides 0 by 0 for a chunk without terms
            scores = (np.nan_to_num(index.get_scores(terms(question))) for question in questions)
            return best_chunks(scores, chunks, self.k)
