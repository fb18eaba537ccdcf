"""Computes term weights of chunks, their sums over the terms of a question, and the best chunks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from leporello.core.calls.memory import facts_of
from leporello.core.notes import note
from leporello.core.records import Chunk, Hit, Index
from leporello.text.tokens import terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_SEPARATOR = "\n"  # no term contains it


def grams(text: str, longest: int) -> list[str]:
    """Returns a text's terms, then its pairs of successive terms, and so on, up to `longest`."""
    single = terms(text)
    runs = list(single)
    for n in range(2, longest + 1):
        runs += map(" ".join, zip(*(single[i:] for i in range(n)), strict=False))
    return runs


@dataclass(frozen=True, slots=True, eq=False)
class TermCounts:
    """Counts of terms in texts: arrays of one length, sorted by term, then by text."""

    texts: NDArray[np.int64]  # index of the text, shape (entries,)
    terms: NDArray[np.int64]  # number of the term, shape (entries,)
    counts: NDArray[np.float64]  # count of the term in the text, shape (entries,)


def count_terms(texts: Sequence[str], longest: int = 1) -> tuple[TermCounts, dict[str, int]]:
    """Returns the counts of all grams of texts, up to `longest` terms, and the grams' numbers."""
    import numpy as np

    ids: defaultdict[str, int] = defaultdict()
    ids.default_factory = ids.__len__  # a new term gets the next number
    sizes: list[int] = []

    def bags() -> Iterator[Sequence[str]]:
        for text in texts:
            bag = grams(text, longest)
            sizes.append(len(bag))
            yield bag  # not in a list: terms are numbered while they are in the processor's cache

    numbers = np.fromiter(map(ids.__getitem__, chain.from_iterable(bags())), np.int64)
    # Term and text as one integer of eight bytes: one sort counts all pairs without strings. Not
    # `np.unique`, which takes longer than all other steps of a short text.
    pairs = numbers * len(sizes) + np.arange(len(sizes)).repeat(sizes)
    pairs.sort()
    is_edge = np.ones(len(pairs) + 1, np.bool_)
    is_edge[1:-1] = pairs[1:] != pairs[:-1]
    edges = is_edge.nonzero()[0]
    terms, of_texts = np.divmod(pairs[edges[:-1]], max(1, len(sizes)))
    counts = (edges[1:] - edges[:-1]).astype(np.float64)
    ids.default_factory = None
    return TermCounts(of_texts, terms, counts), ids


def count_known(bags: Iterable[Sequence[str]], ids: Mapping[str, int]) -> list[Counter[int]]:
    """Returns the counts of each bag's terms that have a number, by number."""
    return [Counter(ids[term] for term in bag if term in ids) for bag in bags]


def pack(counts: TermCounts, weights: NDArray[np.float64], ids: Mapping[str, int]) -> Index:
    """Returns an index: `chunks` and `weights` of term t are at `starts[t]:starts[t + 1]`."""
    import numpy as np

    starts = counts.terms.searchsorted(np.arange(len(ids) + 1))
    return packed_terms(weights, counts.texts, starts, ids)


def packed_terms(
    weights: NDArray[np.float64],
    chunks: NDArray[np.integer[Any]],
    starts: NDArray[np.integer[Any]],
    ids: Mapping[str, int],
) -> Index:
    """Returns weights of terms in chunks as an index; see `pack`."""
    import numpy as np

    # One array of bytes, since the cache maps arrays into memory but would parse a list of strings.
    encoded = np.frombuffer(_SEPARATOR.join(ids).encode("utf-8", "surrogatepass"), np.uint8)
    facts_of(encoded)["terms"] = ids
    return {
        "weights": weights,
        # Half the memory and disk of 64 bits; no document has two billion chunks.
        "chunks": chunks.astype(np.int32),
        "starts": starts.astype(np.int64, copy=False),
        "terms": encoded,
    }


def term_ids(index: Index) -> Mapping[str, int]:
    """Returns the terms of a packed index with their numbers; unpacked once per index."""
    encoded: Any = index["terms"]
    memory = facts_of(encoded)
    if "terms" not in memory:
        text = encoded.tobytes().decode("utf-8", "surrogatepass")
        terms = text.split(_SEPARATOR) if text else []
        memory["terms"] = {term: number for number, term in enumerate(terms)}
    ids: Mapping[str, int] = memory["terms"]
    return ids


def add_up(
    index: Index, queries: Iterable[Mapping[int, float]], chunks: int
) -> Iterator[NDArray[np.float64]]:
    """Yields the scores of all chunks, shape (chunks,), for each question.

    A score is the sum, over the terms of a question, of their weights in the question, `queries`,
    times their weights in the chunk.
    """
    import numpy as np

    packed: Any = index
    starts, places, weights = packed["starts"], packed["chunks"], packed["weights"]
    for query in queries:
        # Sorted, since the order of terms determines the sums' rounding.
        terms = [(slice(starts[t], starts[t + 1]), weight) for t, weight in sorted(query.items())]
        cells = np.concatenate([places[:0], *[places[entries] for entries, _ in terms]])
        # Most terms occur once in a question, and need no product.
        products = [weights[e] if weight == 1 else weight * weights[e] for e, weight in terms]
        values = np.concatenate([weights[:0], *products])
        sums: NDArray[Any] = np.bincount(cells, values, minlength=chunks)
        yield sums


def retrieve_by_index(
    self: Any,  # noqa: ANN401 -- any retriever with an index
    questions: Sequence[str],
    chunks: Sequence[Chunk],
) -> list[list[Hit]]:
    """Returns the hits of each question: the method `retrieve` of a retriever with an index."""
    hits: list[list[Hit]] = self.search(self.index(chunks), questions, chunks)
    return hits


def best_chunks(
    scores: Iterable[NDArray[np.floating[Any]]], chunks: Sequence[Chunk], k: int
) -> list[list[Hit]]:
    """Returns the k best chunks of each question, from its scores of shape (chunks,)."""
    return [
        [Hit(chunks[i], score) for i, score in zip(best.tolist(), row[best].tolist(), strict=True)]
        for row in scores
        for best in (_best(row, k),)
    ]


def matching(
    rankings: Sequence[Sequence[Hit]], bags: Iterable[Sequence[str]], name: str
) -> list[list[Hit]]:
    """Returns the hits with a positive score; a question without terms keeps all its hits."""
    matches = [
        [hit for hit in hits if hit.score > 0 or not bag]
        for hits, bag in zip(rankings, bags, strict=True)
    ]
    if any(hits and not positive for hits, positive in zip(rankings, matches, strict=True)):
        note(f"{name} found no passage with a word of a question on this document")
    return matches


def _best(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.intp]:
    """Returns the indexes of the k highest scores, best first; ties keep their order."""
    import numpy as np

    ranks = -scores
    if k >= len(ranks):
        return ranks.argsort(kind="stable")
    # A partition is linear in the number of chunks; only the k best are sorted.
    worst = np.partition(ranks, k - 1)[k - 1]
    # The k best, and ties with the last of them; NaN sorts last.
    candidates = np.flatnonzero(~(ranks > worst))
    best: NDArray[np.intp] = candidates[ranks[candidates].argsort(kind="stable")[:k]]
    return best


def in_order(hits: Iterable[Hit]) -> list[Hit]:
    """Returns hits best first, and in document order if scores are equal."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.start, hit.chunk.end))
