"""Dense retrieval: the cosine of a question's and a chunk's embeddings.

The vectors are searched with faiss, exactly, without an index to build.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leporello.core.environment.extras import require
from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.embedders import cut, load_encoder, room
from leporello.retrievers.postings import in_order, retrieve_by_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 5  # the other texts of a batch change the sixth digit of a cosine


def search_flat(index: Index, queries: NDArray[np.float32], k: int) -> list[dict[int, float]]:
    """Returns the rounded products of the k best chunks of each question, and of some more.

    `queries` has shape (questions, dimensions).
    """
    require("dense retrieval", "faiss")
    import faiss
    import numpy as np

    packed: Any = index
    vectors, first = packed["vectors"], packed["first"]
    pieces = k * int(np.diff(first, append=len(vectors)).max())  # of k chunks at most
    best: list[dict[int, float]] = [{} for _ in queries]
    waiting = np.arange(len(queries))
    while len(waiting):
        count = min(pieces + 1, len(vectors))
        metric = faiss.METRIC_INNER_PRODUCT
        products, nearest = faiss.knn(queries[waiting], vectors, count, metric=metric)
        rounded = products.astype(np.float64).round(_DIGITS)
        chunks = np.searchsorted(first, nearest, side="right") - 1
        # From the worst piece to the best, which gives its chunk the score.
        rows = zip(chunks[:, ::-1].tolist(), rounded[:, ::-1].tolist(), strict=True)
        for question, (numbers, scores) in zip(waiting.tolist(), rows, strict=True):
            best[question] = dict(zip(numbers, scores, strict=True))
        if count == len(vectors):
            break
        # Pieces that were not returned may have the same rounded product as the last: the first
        # chunk of equal ones is the hit, whatever the digits that depend on the batch.
        waiting = waiting[rounded[:, -1] == rounded[:, pieces - 1]]
        pieces *= 8
    return best


@dataclass(frozen=True)
class Dense:
    """Embeds with sentence-transformers, and finds the nearest chunks with faiss.

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
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "query_prefix", "batch_size")
    retrieve = retrieve_by_index

    k: Positive = 10
    model: ModelSource = "all-minilm-l6-v2"
    query_prefix: str = ""
    passage_prefix: str = ""
    batch_size: Positive = 32

    def load(self) -> None:
        """Loads the model, which the first call would load otherwise."""
        load_encoder("SentenceTransformer", self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (pieces, dimensions), and each chunk's `first` piece."""
        vectors, first = self._embed([chunk.text for chunk in chunks], "document")
        return {"vectors": vectors, "first": first}

    def segment(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the index of one file of a collection, for `join`."""
        return self.index(chunks)

    def join(self, segments: Sequence[Index]) -> Index:
        """Returns the index of a collection from those of its files."""
        import numpy as np

        files: list[Any] = [*segments]
        starts = np.cumsum([0, *(len(file["vectors"]) for file in files)])
        first = [file["first"] + start for file, start in zip(files, starts, strict=False)]
        vectors = [file["vectors"] for file in files]
        return {"vectors": np.concatenate(vectors), "first": np.concatenate(first)}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k nearest chunks by cosine; a blank question has the same score for all."""
        rankings = search_flat(index, self._questions(questions), self.k)
        hits_of = ([Hit(chunks[i], product) for i, product in best.items()] for best in rankings)
        return [in_order(hits)[: self.k] for hits in hits_of]

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

        model = load_encoder("SentenceTransformer", self.model)
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
