"""BM25: term frequencies that saturate, weighed by rarity and by length.

Postings of several files are one index, each file's kept apart. Terms are known by 64 bits of a
hash: so a file's are looked up, and those of all files counted, without a dictionary in memory.
That any two of a million terms share one has odds of 1 : 30 000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import JSON, Chunk, Hit, Index
from leporello.retrievers.index.postings import (
    ByIndex,
    TermCounts,
    add_up,
    best_chunks,
    count_known,
    count_terms,
    pack,
    question_grams,
    term_ids,
)
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 20  # of the factors; what is kept on disk depends on them


@dataclass(frozen=True, eq=False)
class SegmentedPostings:
    """The postings of all files.

    Attributes:
        segments: Postings of each file, as `segment` makes them.
        firsts: Number of each file's first chunk among all chunks.
        lengths: Number of terms of each chunk, shape (chunks,).
        holding: Number of chunks that each term stands in, terms in no order, shape (terms,).
    """

    segments: tuple[Any, ...]
    firsts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    holding: NDArray[np.int64]

    @classmethod
    def of(cls, segments: Sequence[Index]) -> SegmentedPostings:
        """Returns segments as one."""
        import numpy as np

        made: Any = tuple(segments)
        sizes = [len(each["lengths"]) for each in made]
        hashes = np.concatenate([each["hashes"] for each in made])
        holding = np.concatenate([np.diff(each["starts"]) for each in made])
        order = hashes.argsort()
        new = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
        return cls(
            made,
            np.cumsum([0, *sizes[:-1]]),
            np.concatenate([each["lengths"] for each in made]).astype(np.int64),
            np.add.reduceat(holding[order], new) if len(new) else holding,
        )

    def counts_of(self, terms: Sequence[str]) -> TermCounts:
        """Returns how often each term stands in each chunk of all files."""
        import numpy as np

        wanted, found = _hashes(terms), list[tuple[Any, Any, Any]]()
        for first, each in zip(self.firsts, self.segments, strict=True):
            at = np.searchsorted(each["hashes"], wanted)
            numbers = np.flatnonzero(at < len(each["hashes"]))
            numbers = numbers[each["hashes"][at[numbers]] == wanted[numbers]]
            starts = each["starts"][at[numbers]].astype(np.int64)
            sizes = each["starts"][at[numbers] + 1] - starts
            skipped = np.cumsum(sizes) - sizes
            entries = np.arange(sizes.sum()) + np.repeat(starts - skipped, sizes)
            texts = each["chunks"][entries] + first
            found.append((texts, np.repeat(numbers, sizes), each["counts"][entries]))
        texts, numbers, counts = map(np.concatenate, zip(*found, strict=True))
        order = numbers.argsort(kind="stable")  # by term; its chunks are in order already
        return TermCounts(texts[order], numbers[order], counts[order].astype(np.float64))


def segment(counts: TermCounts, ids: Iterable[str], chunks: int) -> Index:
    """Returns the postings of a file's chunks, terms in the order of their hashes.

    `chunks` and `counts` of term t stand at `starts[t]:starts[t + 1]`; all in as few bytes as hold
    them.

    Args:
        counts: Counts of the terms.
        ids: Terms in the order of their numbers.
        chunks: Number of chunks.
    """
    import numpy as np

    hashes = _hashes([*ids])
    order = hashes.argsort()
    starts = np.searchsorted(counts.terms, np.arange(len(hashes) + 1))
    sizes = np.diff(starts)[order]
    ends = np.cumsum(sizes)
    entries = np.arange(len(counts.texts)) + np.repeat(starts[order] - (ends - sizes), sizes)
    return {
        "hashes": hashes[order],
        "starts": _small(np.concatenate([[0], ends])),
        "chunks": _small(counts.texts[entries]),
        "counts": _small(counts.counts[entries]),
        "lengths": _small(np.bincount(counts.texts, counts.counts, minlength=chunks)),
    }


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    """Returns natural numbers in as few bytes as hold the largest."""
    import numpy as np

    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _hashes(terms: Sequence[str]) -> NDArray[np.uint64]:
    """Returns 64 bits of each term: its bytes times random factors, summed."""
    import numpy as np

    if not terms:
        return np.zeros(0, np.uint64)
    written = "\n".join([*terms, ""]).encode("utf-8", "surrogatepass")  # which no term has in it
    letters = np.frombuffer(written, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    sizes = ends - starts + 1
    factors = np.random.PCG64(_SEED).random_raw(int(sizes.max())) | np.uint64(1)
    places = np.arange(len(letters)) - np.repeat(starts, sizes)
    hashes: NDArray[np.uint64] = np.add.reduceat(
        letters.astype(np.uint64) * factors[places], starts
    )
    return hashes


# A term in more than half of the chunks has a negative idf; it gets this share of the mean idf.
_FLOOR = 0.25
_FEW = 50  # chunks below which arrays take longer than dictionaries


@dataclass(frozen=True)
class BM25(ByIndex):
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

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns what each term adds to each chunk."""
        if len(chunks) < _FEW:
            return {"few": self._weights_of_few([terms(chunk.text) for chunk in chunks])}
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
        if isinstance(index, dict) and "few" in index:
            few: Any = index["few"]
            return [_best_of_few(few, question, chunks, self.k) for question in questions]
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

    def _weights_of_few(self, texts: Sequence[Sequence[str]]) -> dict[str, JSON]:
        """Returns the number of each term and its weight in the chunks that hold it.

        Sums, products and their order are those of the arrays, so that scores are the same.
        """
        bags = [*map(Counter, texts)]
        holding = Counter(chain.from_iterable(bags))
        idf = _idf_of_few(len(texts))
        mean = sum(map(len, texts)) / max(1, len(texts))
        floor = 0.0
        if any(idf[count] < 0 for count in holding.values()):
            import numpy as np

            floor = _FLOOR * float(np.mean([idf[count] for count in holding.values()]))
        weights: dict[str, JSON] = {}
        discounts = [self.k1 * (1 - self.b + self.b * len(text) / mean) for text in texts if mean]
        for number, (term, count) in enumerate(holding.items()):
            factor = floor if idf[count] < 0 else idf[count]
            weights[term] = [
                number,
                [
                    [place, bag[term] * (self.k1 + 1) / (bag[term] + discounts[place]) * factor]
                    for place, bag in enumerate(bags)
                    if term in bag
                ],
            ]
        return weights

    def _weights(
        self,
        bags: TermCounts,
        lengths: NDArray[Any],
        holding: NDArray[np.int64],
        all_holding: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Returns the weight of each count.

        `holding` is the number of chunks that hold each of the terms that are counted, and
        `all_holding` that of all terms that there are, in any order.
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


@lru_cache(maxsize=_FEW)
def _idf_of_few(chunks: int) -> list[float]:
    """Returns the idf of terms by the number of chunks that hold them."""
    import numpy as np

    values: list[float] = _idf(np.arange(chunks + 1), chunks).tolist()
    return values


def _best_of_few(
    weights: dict[str, Any], question: str, chunks: Sequence[Chunk], k: int
) -> list[Hit]:
    """Returns the k best chunks for a question, by what `_weights_of_few` returned."""
    asked = Counter(term for term in question_grams(question) if term in weights)
    scores = [0.0] * len(chunks)
    for term in sorted(asked, key=lambda term: weights[term][0]):
        for place, weight in weights[term][1]:
            scores[place] += asked[term] * weight
    best = sorted(range(len(chunks)), key=lambda place: -scores[place])[:k]
    return [Hit(chunks[place], scores[place]) for place in best]


def _idf(holding: NDArray[np.int64], chunks: int) -> NDArray[np.float64]:
    import numpy as np

    idf: NDArray[np.float64] = np.log(chunks - holding + 0.5) - np.log(holding + 0.5)
    return idf
