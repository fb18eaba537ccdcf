"""Dense retrieval: the cosine of a question's and a chunk's embeddings.

All vectors are compared by a matrix product; those of several files stay in the files of the
cache, which are mapped into memory. A collection of more than 200 000 has a graph of faiss
(HNSW), which takes a minute to build, again after each change (decision 36).
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
from leporello.retrievers.embedders import cut, load_embedder, room
from leporello.retrievers.postings import ByIndex, best_chunks, in_order

if TYPE_CHECKING:
    import faiss
    import numpy as np
    from numpy.typing import NDArray

# With 100 000 vectors: 3 ms a query, 44 to 102 s to build; IVF had a recall of 0.90 only.
_NEIGHBOURS, _BUILD, _VISITED = 32, 80, 256  # of HNSW; recall@10 is 0.99 of exact search
# The other texts of a batch change the sixth digit of a cosine.
_DIGITS = 5
_BLOCK = 256  # questions whose scores are in memory at once


def products(
    segments: Sequence[Any], queries: NDArray[np.float32], block: int
) -> Iterator[NDArray[np.float32]]:
    """Yields the products of questions with each chunk's best piece, in blocks of questions.

    Args:
        segments: Indexes of successive chunks.
        queries: Vectors of the questions, shape (questions, dimensions).
        block: Number of questions per block.

    Yields:
        Products, shape (questions of the block, chunks).
    """
    import numpy as np

    for start in range(0, len(queries), block):
        rows = queries[start : start + block]
        parts = (np.maximum.reduceat(rows @ s["vectors"].T, s["first"], axis=1) for s in segments)
        yield np.concatenate([*parts], axis=1)


def graph(segments: Sequence[Any]) -> Index:
    """Returns an HNSW `graph` of all vectors, and each chunk's `first` piece among them."""
    require("embeddings of so many chunks", "faiss")
    import faiss
    import numpy as np

    sizes = [len(segment["vectors"]) for segment in segments]
    dimensions = segments[0]["vectors"].shape[1]
    hnsw = faiss.IndexHNSWFlat(dimensions, _NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    hnsw.hnsw.efConstruction = _BUILD
    for segment in segments:
        hnsw.add(np.ascontiguousarray(segment["vectors"]))
    starts = np.cumsum([0, *sizes[:-1]])
    first = [s["first"] + at for s, at in zip(segments, starts.tolist(), strict=True)]
    return {"graph": faiss.serialize_index(hnsw), "first": np.concatenate(first)}


def search_graph(index: Index, queries: NDArray[np.float32], k: int) -> Iterator[dict[int, float]]:
    """Yields the rounded products of about the k best chunks of each question, by chunk.

    `index` is a result of `graph`; `queries` has shape (questions, dimensions).
    """
    import numpy as np

    hnsw, packed = _unpacked(index), index
    first: Any = packed["first"]
    pieces = min(hnsw.ntotal, 4 * k)  # several pieces of a long chunk may be among the best
    # HNSW returns no more than it visits.
    hnsw.hnsw.efSearch = max(_VISITED, pieces)
    for row, nearest in zip(*hnsw.search(np.ascontiguousarray(queries), pieces), strict=True):
        is_found = nearest >= 0
        chunks = np.searchsorted(first, nearest[is_found], side="right") - 1
        rounded = row[is_found].astype(np.float64).round(_DIGITS)
        best: dict[int, float] = {}
        for chunk, product in zip(chunks.tolist(), rounded.tolist(), strict=True):
            best[chunk] = max(product, best.get(chunk, product))
        yield best


def _unpacked(index: Index) -> faiss.IndexHNSW:
    """Returns the graph without copying the vectors of the array."""
    import faiss

    data: Any = index["graph"]
    memory = facts_of(data)
    if "graph" not in memory:
        library: Any = faiss  # its types lack both functions
        reader = library.ZeroCopyIOReader(library.swig_ptr(data), data.nbytes)
        memory["graph"] = library.read_index(reader)
    unpacked: faiss.IndexHNSW = memory["graph"]
    return unpacked


@dataclass(frozen=True)
class Dense(ByIndex):
    """Embeds with sentence-transformers, and finds the nearest chunks.

    Nothing is truncated. A chunk longer than the model's input window is embedded in segments, and
    has the score of its best segment (MaxP: Dai and Callan, SIGIR 2019): an answer is in one place,
    and a mean over all segments would hide it. The embedding of a question that is too long is the
    mean of its segments'.

    Attributes:
        k: Number of hits per question.
        model: A sentence-transformers model.
        query_prefix: Text before each question, for models that were trained with one (`query: `);
            if empty, the query prompt that is saved with the model, if any.
        passage_prefix: Text before each chunk; if empty, the model's document prompt, if any.
        batch_size: Number of texts per batch.
        exact: Maximum number of vectors of a collection that are all compared; for more, faiss'
            HNSW finds about 99 % of the nearest.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "query_prefix", "batch_size")
    join_only: ClassVar[tuple[str, ...]] = ("exact",)

    k: Positive = 10
    model: ModelSource = "all-minilm-l6-v2"
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_size: Positive = 32
    # All products of 100 000 vectors take 15 ms; a graph at 50 000 would cost minutes to save
    # these.
    exact: Count = 200_000

    def load(self) -> None:
        """Loads the model, which the first call would load otherwise."""
        load_embedder(self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (pieces, dimensions), and each chunk's `first` piece."""
        vectors, first = self._embed([chunk.text for chunk in chunks], "document")
        return {"vectors": vectors, "first": first}

    def segment(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the index of one file of a collection, for `join`."""
        return self.index(chunks)

    def join(self, segments: Sequence[Any]) -> tuple[Any, ...] | Index:
        """Returns the index of a collection: those of its files, or a graph of many vectors."""
        count = sum(len(segment["vectors"]) for segment in segments)
        return tuple(segments) if count <= self.exact else graph(segments)

    def search(
        self, index: Index | tuple[Any, ...], questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k nearest chunks by cosine; a blank question has the same score for all."""
        import numpy as np

        if not chunks or not questions:
            return [[] for _ in questions]
        queries = self._questions(questions)
        segments = index if isinstance(index, tuple) else (index,)
        if "graph" in segments[0]:
            rankings = search_graph(segments[0], queries, self.k)
            hits = ([Hit(chunks[i], product) for i, product in r.items()] for r in rankings)
            return [in_order(of_question)[: self.k] for of_question in hits]
        # Rounded before the ranking: otherwise the order of ties would depend on the batch.
        rounded = (
            block.astype(np.float64).round(_DIGITS) for block in products(segments, queries, _BLOCK)
        )
        return best_chunks(rounded, chunks, self.k)

    def _questions(self, questions: Sequence[str]) -> NDArray[np.float32]:
        """Returns one vector per question, of length 1, or 0 for a blank question."""
        import numpy as np

        vectors, first = self._embed(questions, "query")
        sums = np.add.reduceat(vectors, first, axis=0)
        # A prefix alone has an embedding too, and would rank chunks by it.
        sums[[not question.strip() for question in questions]] = 0
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        unit = sums / np.where(lengths > 0, lengths, 1)
        return unit.astype(np.float32)

    def _embed(
        self, texts: Sequence[str], task: Literal["query", "document"]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Returns the pieces' vectors, of length 1, and the index of each text's first piece."""
        import numpy as np

        if not texts:
            return np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
        model = load_embedder(self.model)
        parameter = self.query_prefix if task == "query" else self.passage_prefix
        prefix = parameter or model.prompts.get(task) or ""
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
