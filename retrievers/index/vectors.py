"""Embeddings of several files as one index: all products, or faiss' HNSW where there are many.

Vectors stay in the files that the cache maps into memory. A product with 100 000 vectors takes
15 ms; their graph takes a minute to make, again after each change (decision 36).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.environment.extras import require
from leporello.core.records import Index

if TYPE_CHECKING:
    import faiss
    import numpy as np
    from numpy.typing import NDArray

_NEIGHBOURS, _BUILD, _VISITED = 32, 80, 256  # of HNSW: recall@10 is 0.99 of exact
_GRAPHS: dict[int, faiss.IndexHNSW] = {}


@dataclass(frozen=True, eq=False)
class SegmentedVectors:
    """Indexes of each file's chunks, `vectors` and each chunk's `first` piece, in order."""

    segments: tuple[Any, ...]

    def __len__(self) -> int:
        return sum(len(segment["vectors"]) for segment in self.segments)


def products(
    segments: Sequence[Any], asked: NDArray[np.float32], block: int
) -> Iterator[NDArray[np.float32]]:
    """Yields the products of questions with each chunk's best piece, some questions at a time.

    Args:
        segments: Indexes of chunks, one after the other.
        asked: Questions, shape (questions, dimensions).
        block: Number of questions at a time.

    Yields:
        Shape (some questions, chunks).
    """
    import numpy as np

    for start in range(0, len(asked), block):
        some = asked[start : start + block]
        parts = (np.maximum.reduceat(some @ s["vectors"].T, s["first"], axis=1) for s in segments)
        yield np.concatenate([*parts], axis=1)


def graph(vectors: SegmentedVectors) -> Index:
    """Returns HNSW over all vectors, `graph`, and each chunk's `first` piece among them."""
    require("embeddings of so many chunks", "faiss")
    import faiss
    import numpy as np

    sizes = [len(segment["vectors"]) for segment in vectors.segments]
    dimensions = vectors.segments[0]["vectors"].shape[1]
    made = faiss.IndexHNSWFlat(dimensions, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    made.hnsw.efConstruction = _BUILD
    for segment in vectors.segments:
        made.add(np.ascontiguousarray(segment["vectors"]))
    starts = np.cumsum([0, *sizes[:-1]])
    first = [s["first"] + at for s, at in zip(vectors.segments, starts.tolist(), strict=True)]
    return {"graph": faiss.serialize_index(made), "first": np.concatenate(first)}


def search_graph(index: Index, asked: NDArray[np.float32], k: int) -> Iterator[dict[int, float]]:
    """Yields the products of about the k best chunks of each question, by chunk.

    Args:
        index: As `graph` makes it.
        asked: Questions, shape (questions, dimensions).
        k: Number of chunks.
    """
    import numpy as np

    made, packed = _unpacked(index), index
    first: Any = packed["first"]
    pieces = min(made.ntotal, 4 * k)  # of a long chunk several may be among the best
    made.hnsw.efSearch = max(_VISITED, pieces)
    for row, found in zip(*made.search(np.ascontiguousarray(asked), pieces), strict=True):
        chunks = np.searchsorted(first, found[found >= 0], side="right") - 1
        best: dict[int, float] = {}
        for chunk, product in zip(chunks.tolist(), row.tolist(), strict=False):
            best.setdefault(chunk, product)  # the best piece comes first
        yield best


def _unpacked(index: Index) -> faiss.IndexHNSW:
    """Returns the graph, whose vectors stay where the array has them."""
    import faiss

    written: Any = index["graph"]
    if id(written) not in _GRAPHS:
        library: Any = faiss  # whose types lack both
        reader = library.ZeroCopyIOReader(library.swig_ptr(written), written.nbytes)
        _GRAPHS[id(written)] = library.read_index(reader)
        weakref.finalize(written, _GRAPHS.pop, id(written)).atexit = False
    return _GRAPHS[id(written)]
