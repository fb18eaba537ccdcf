"""Learned sparse retrieval: represents texts by word weights of a masked language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.index.embedders import cut, load_sparse, room
from leporello.retrievers.index.postings import ByIndex, best_chunks

# The other texts of a batch change the sixth digit of each of some hundred weights.
_DIGITS = 2


@dataclass(frozen=True)
class Splade(ByIndex):
    """Compares the words that a masked language model predicts for questions and chunks.

    Formal et al. (SIGIR 2021 and 2022). Nothing is truncated: a chunk or question longer than the
    input window is encoded in segments, and the weight of a word is its maximum over segments, as
    over tokens.

    Attributes:
        model: A sparse encoder of sentence-transformers, or a masked language model trained as one.
        k: Number of hits per question.
        batch_size: Number of texts per batch; a text needs memory for its tokens times the
            vocabulary.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "batch_size")

    model: ModelSource
    k: Positive = 10
    batch_size: Positive = 8

    def load(self) -> None:
        """Loads the model, which the first call would load otherwise."""
        load_sparse(self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the `weights` of the chunks' `words`, and the `begin` of each chunk in both."""
        import numpy as np

        if not chunks:
            return {"weights": np.zeros(0), "words": np.zeros(0, int), "begin": np.zeros(1, int)}
        matrix = self._encode([chunk.text for chunk in chunks], "document")
        return {"weights": matrix.data, "words": matrix.indices, "begin": matrix.indptr}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks of each question; a blank question scores 0 for all."""
        from scipy.sparse import csr_array

        if not chunks or not questions:
            return [[] for _ in questions]
        queries = self._encode(questions, "query")
        parts = (index["weights"], index["words"], index["begin"])
        of_chunks = csr_array(parts, shape=(len(chunks), queries.shape[1]))
        scores = (queries.astype(float) @ of_chunks.T.astype(float)).toarray().round(_DIGITS)
        scores[[not question.strip() for question in questions]] = 0
        return best_chunks([scores], chunks, self.k)

    def _encode(self, texts: Sequence[str], task: Literal["query", "document"]) -> Any:  # noqa: ANN401 -- scipy has no types
        """Returns a sparse matrix of shape (texts, vocabulary)."""
        import numpy as np
        from scipy.sparse import csr_array, vstack

        model = load_sparse(self.model)
        prompt = model.prompts.get(task) or ""
        pieces = cut(model, texts, room(model, "", prompt, task=task))
        encoded: Any = model.encode(
            list(chain.from_iterable(pieces)),
            prompt=prompt,
            task=task,
            batch_size=self.batch_size,
            save_to_cpu=True,
            show_progress_bar=False,
        )
        encoded = encoded.coalesce()
        places, values = encoded.indices().numpy(), encoded.values().float().numpy()
        weights = csr_array((values, (places[0], places[1])), shape=tuple(encoded.shape))
        first = np.cumsum([0, *map(len, pieces)]).tolist()
        rows = []
        for begin, group in zip(first, pieces, strict=False):
            row = weights[[begin]]
            for place in range(begin + 1, begin + len(group)):
                row = row.maximum(weights[[place]])
            rows.append(row)
        return csr_array(vstack(rows, format="csr"))
