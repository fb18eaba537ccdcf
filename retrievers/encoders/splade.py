"""Learned sparse retrieval: texts as weights of the words of a masked language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, Literal

from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.index.embedders import cut, load_sparse, room
from leporello.retrievers.index.postings import ByIndex, best_chunks

# What batch mates change in the sixth digit of some hundred weights shows behind this digit.
_DIGITS = 2


@dataclass(frozen=True)
class Splade(ByIndex):
    """Compares the words that a masked language model expects of questions and chunks.

    Formal et al. (SIGIR 2021 and 2022). Nothing is cut off: a longer chunk or question is encoded
    in pieces, and a word has its greatest weight in any of them, as it has among tokens.

    Attributes:
        model: A sparse encoder of sentence-transformers, or a masked language model trained as one.
        k: Number of chunks a question gets.
        batch_size: Number of texts encoded at once; each takes its tokens times the vocabulary.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "batch_size")

    model: ModelSource
    k: Positive = 10
    batch_size: Positive = 8

    def load(self) -> None:
        """Loads the model, which is otherwise done when it is first asked."""
        load_sparse(self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the chunks' `weights` of `words`, and where each chunk's `begin` in both."""
        import numpy as np

        if not chunks:
            return {"weights": np.zeros(0), "words": np.zeros(0, int), "begin": np.zeros(1, int)}
        made = self._encode([chunk.text for chunk in chunks], "document")
        return {"weights": made.data, "words": made.indices, "begin": made.indptr}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks of each question; a blank one shares nothing with any."""
        from scipy.sparse import csr_array

        if not chunks or not questions:
            return [[] for _ in questions]
        asked = self._encode(questions, "query")
        parts = (index["weights"], index["words"], index["begin"])
        of_chunks = csr_array(parts, shape=(len(chunks), asked.shape[1]))
        scores = (asked.astype(float) @ of_chunks.T.astype(float)).toarray().round(_DIGITS)
        scores[[not question.strip() for question in questions]] = 0
        return best_chunks([scores], chunks, self.k)

    def _encode(self, texts: Sequence[str], task: Literal["query", "document"]) -> Any:  # noqa: ANN401 -- scipy has no types
        """Returns a sparse matrix of shape (texts, vocabulary)."""
        import numpy as np
        from scipy.sparse import csr_array, vstack

        model = load_sparse(self.model)
        prompt = model.prompts.get(task) or ""
        pieces = cut(model, texts, room(model, "", prompt, task=task))
        found: Any = model.encode(
            list(chain.from_iterable(pieces)),
            prompt=prompt,
            task=task,
            batch_size=self.batch_size,
            save_to_cpu=True,
            show_progress_bar=False,
        )
        found = found.coalesce()
        places, values = found.indices().numpy(), found.values().float().numpy()
        weights = csr_array((values, (places[0], places[1])), shape=tuple(found.shape))
        first = np.cumsum([0, *map(len, pieces)]).tolist()
        rows = []
        for begin, own in zip(first, pieces, strict=False):
            row = weights[[begin]]
            for place in range(begin + 1, begin + len(own)):
                row = row.maximum(weights[[place]])
            rows.append(row)
        return csr_array(vstack(rows, format="csr"))
