"""BM25: saturating term frequencies, weighted by rarity and by length.

An index of several files contains separate postings of each file. 64-bit hashes identify the
terms, so that lookups and counts over all files need no dictionary in memory. The odds that two of
a million terms have the same hash are 1 : 30 000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from leporello.core.protocols import NonNegative, Positive, Share
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.postings import (
    TermCounts,
    add_up,
    best_chunks,
    count_known,
    count_terms,
    matching,
    pack,
    retrieve_by_index,
    term_ids,
)
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 20  # of the hash factors; must not change, since cached indexes depend on it


def _counts_of(segments: Sequence[Any], names: Sequence[str]) -> TermCounts:
    """Returns the count of each term in each chunk of all files."""
    import numpy as np

    hashes, by_file, first = _hashes(names), list[tuple[Any, Any, Any]](), 0
    for file in segments:
        at = np.searchsorted(file["hashes"], hashes)
        numbers = np.flatnonzero(at < len(file["hashes"]))
        numbers = numbers[file["hashes"][at[numbers]] == hashes[numbers]]
        starts = file["starts"][at[numbers]].astype(np.int64)
        sizes = file["starts"][at[numbers] + 1] - starts
        skipped = np.cumsum(sizes) - sizes
        entries = np.arange(sizes.sum()) + np.repeat(starts - skipped, sizes)
        texts = file["chunks"][entries].astype(np.int64) + first
        by_file.append((texts, np.repeat(numbers, sizes), file["counts"][entries]))
        first += len(file["lengths"])
    texts, numbers, counts = map(np.concatenate, zip(*by_file, strict=True))
    order = numbers.argsort(kind="stable")  # by term; the chunks of a term are in order
    return TermCounts(texts[order], numbers[order], counts[order].astype(np.float64))


def segment(counts: TermCounts, ids: Iterable[str], chunks: int) -> Index:
    """Returns the postings of a file's chunks, with terms in the order of their hashes.

    `chunks` and `counts` of term t are at `starts[t]:starts[t + 1]`. Each array has the smallest
    integer type for its values. `ids` are terms in the order of their numbers.
    """
    import numpy as np

    # Hashes, since a lookup by term would need a dictionary of all files' terms in memory.
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
    """Returns natural numbers in the smallest type for the largest of them."""
    import numpy as np

    # Most counts fit a byte, so segments take a fraction of the cache and memory.
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _hashes(names: Sequence[str]) -> NDArray[np.uint64]:
    """Returns 64-bit hashes of terms: sums of their bytes times random factors."""
    import numpy as np

    if not names:
        return np.zeros(0, np.uint64)
    encoded = "\n".join([*names, ""]).encode("utf-8", "surrogatepass")  # no term contains "\n"
    letters = np.frombuffer(encoded, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    sizes = ends - starts + 1
    # Odd factors, which are invertible modulo 2^64: terms that differ in one byte never collide.
    factors = np.random.PCG64(_SEED).random_raw(int(sizes.max())) | np.uint64(1)
    places = np.arange(len(letters)) - np.repeat(starts, sizes)
    hashes: NDArray[np.uint64] = np.add.reduceat(
        letters.astype(np.uint64) * factors[places], starts
    )
    return hashes


@dataclass(frozen=True)
class BM25:
    """Okapi BM25 with the idf of Lucene: ln(1 + (N - n + 0.5) / (n + 0.5)), which is positive.

    N is the number of chunks, and n the number of chunks with the term. The weight of a term in a
    chunk does not depend on the question, so weights are computed once per document. Only chunks
    with a term of the question are hits; a question without terms returns the first k chunks.

    Attributes:
        k: Number of hits per question.
        k1: Saturation: larger values give repetitions of a term more weight; 0 ignores them.
        b: Length penalty of long chunks; 0 for no penalty.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k",)
    retrieve = retrieve_by_index
    join_only: ClassVar[tuple[str, ...]] = ("k1", "b")  # parameters that do not change segments

    k: Positive = 10
    k1: NonNegative = 1.5
    b: Share = 0.75

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the weight of each term in each chunk."""
        import numpy as np

        counts, ids = count_terms([chunk.text for chunk in chunks])
        lengths = np.bincount(counts.texts, counts.counts, minlength=len(chunks))
        holding = np.bincount(counts.terms)
        return pack(counts, self._weights(counts, lengths, holding), ids)

    def segment(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the term counts of one file of a collection, for `join`."""
        return segment(*count_terms([chunk.text for chunk in chunks]), len(chunks))

    def join(self, segments: Sequence[Index]) -> tuple[Index, ...]:
        """Returns the index of a collection; `search` computes weights for the questions' terms."""
        return tuple(segments)

    def search(
        self, index: Index | tuple[Index, ...], questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks for each question; without matches no hits, and a note."""
        import numpy as np

        bags = [*map(terms, questions)]
        if isinstance(index, tuple):
            names = [*dict.fromkeys(chain.from_iterable(bags))]
            # Only the questions' terms: rarity and mean length belong to the whole collection.
            counts = _counts_of(index, names)
            files: Sequence[Any] = index
            lengths = np.concatenate([file["lengths"] for file in files]).astype(np.int64)
            holding = np.bincount(counts.terms, minlength=len(names))
            weights = self._weights(counts, lengths, holding)
            index = pack(counts, weights, {term: number for number, term in enumerate(names)})
        queries = count_known(bags, term_ids(index))
        scores = add_up(index, queries, len(chunks))
        return matching(best_chunks(scores, chunks, self.k), bags, "BM25")

    def _weights(
        self, bags: TermCounts, lengths: NDArray[Any], holding: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Returns the weight of each count; `holding` has the number of chunks with each term."""
        import numpy as np

        if not len(bags.counts):
            return bags.counts
        idf = np.log1p((len(lengths) + 0.5 - holding) / (holding + 0.5))
        discount = self.k1 * (1 - self.b + self.b * lengths / (lengths.sum() / len(lengths)))
        saturated = bags.counts * (self.k1 + 1) / (bags.counts + discount[bags.texts])
        weights: NDArray[np.float64] = saturated * idf[bags.terms]
        return weights
