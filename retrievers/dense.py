"""Dense retrieval: the cosine of a question's and a chunk's embeddings.

Embeddings of several files are one index: all products, or faiss' HNSW where there are many.
Vectors stay in the files that the cache maps into memory. A product with 100 000 vectors takes
15 ms; their graph takes a minute to make, again after each change (decision 36).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leporello.core.calls.memory import facts_of
from leporello.core.environment.extras import require
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.index.embedders import cut, load_embedder, room
from leporello.retrievers.index.postings import ByIndex, best_chunks, in_order

if TYPE_CHECKING:
    import faiss
    import numpy as np
    from numpy.typing import NDArray

_NEIGHBOURS, _BUILD, _VISITED = 32, 80, 256  # of HNSW: recall@10 is 0.99 of exact


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
    """Yields by chunk the products of about the k best chunks of each question.

    The index is one that `graph` makes; questions have shape (questions, dimensions).
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
    known = facts_of(written)
    if "graph" not in known:
        library: Any = faiss  # whose types lack both
        reader = library.ZeroCopyIOReader(library.swig_ptr(written), written.nbytes)
        known["graph"] = library.read_index(reader)
    unpacked: faiss.IndexHNSW = known["graph"]
    return unpacked


# What a text's batch mates change in its embedding shows in the sixth digit of a cosine.
_DIGITS = 5
_BLOCK = 256  # questions whose scores are in memory at once


@dataclass(frozen=True)
class Dense(ByIndex):
    """Embeds with sentence-transformers and compares with every chunk, exactly.

    Nothing is cut off. A chunk longer than the model's window is embedded in pieces, and its
    score is that of its best piece: what answers a question stands in one place, and the mean
    would bury it under what stands around it (MaxP: Dai and Callan, SIGIR 2019). Of a question
    that is too long, all counts: its embedding is the mean of its pieces'.

    Attributes:
        k: Number of chunks a question gets.
        model: A sentence-transformers model.
        query_prefix: Text before each question, as some models were trained (`query: `); if empty,
            the prompt for queries that is saved with the model, if any.
        passage_prefix: Text before each chunk, likewise.
        batch_size: Number of texts embedded at once.
        exact: Number of vectors of a collection up to which all are compared; of more, faiss' HNSW
            finds some 99 of 100 of the nearest.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "query_prefix", "batch_size")
    join_only: ClassVar[tuple[str, ...]] = ("exact",)

    k: Positive = 10
    model: ModelSource = "all-minilm-l6-v2"
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_size: Positive = 32
    exact: Count = 200_000

    def load(self) -> None:
        """Loads the model, which is otherwise done when it is first asked."""
        load_embedder(self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (pieces, dimensions), and each chunk's `first` piece."""
        vectors, first = self._embed([chunk.text for chunk in chunks], "document")
        return {"vectors": vectors, "first": first}

    def segment(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the index of one file of a collection, for `join`."""
        return self.index(chunks)

    def join(self, segments: Sequence[Index]) -> SegmentedVectors | Index:
        """Returns the index of a collection: its files' vectors, or a graph of very many."""
        joined = SegmentedVectors(tuple(segments))
        return joined if len(joined) <= self.exact else graph(joined)

    def search(
        self, index: Index | SegmentedVectors, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k nearest chunks, by cosine; a blank question is equally far from all."""
        import numpy as np

        if not chunks or not questions:
            return [[] for _ in questions]
        asked = self._questions(questions)
        if not isinstance(index, SegmentedVectors) and "graph" in index:
            found = search_graph(index, asked, self.k)
            near = ([Hit(chunks[i], round(p, _DIGITS)) for i, p in best.items()] for best in found)
            return [in_order(hits)[: self.k] for hits in near]
        segments = index.segments if isinstance(index, SegmentedVectors) else [index]
        by_chunk = products(segments, asked, _BLOCK)
        rounded = (block.astype(np.float64).round(_DIGITS) for block in by_chunk)
        return best_chunks(rounded, chunks, self.k)

    def _questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector a question, of length 1, or 0 if the question is blank."""
        import numpy as np

        vectors, first = self._embed(questions, "query")
        sums = np.add.reduceat(vectors, first, axis=0)
        sums[[not question.strip() for question in questions]] = 0
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit = sums / np.where(lengths > 0, lengths, 1)
        return unit.astype(np.float32)

    def _embed(
        self, texts: Sequence[str], task: Literal["query", "document"]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns the pieces' vectors, of length 1, and where each text's pieces begin."""
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
        model = load_embedder(self.model)
        own_prefix = self.query_prefix if task == "query" else self.passage_prefix
        prefix = own_prefix or model.prompts.get(task) or ""
        pieces = cut(model, texts, room(model, "", prefix, task=task))
        vectors = model.encode(
            list(chain.from_iterable(pieces)),
            prompt=prefix,
            task=task,
            batch_size=self.batch_size,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        first = np.cumsum([0, *map(len, pieces)])[:-1]
        return np.asarray(vectors, dtype=np.float32), first
