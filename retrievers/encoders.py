"""Retrievers with special encoders: token vectors (ColBERT) and weights of words (Splade)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from leporello.core.protocols import ModelSource, Positive
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.embedders import cut, load_encoder, room, token_room
from leporello.retrievers.postings import best_chunks, retrieve_by_index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# Later digits of a sum over a question's tokens are rounding errors of the 16-bit vectors.
_TOKEN_DIGITS = 4


@dataclass(frozen=True)
class ColBERT:
    """Compares the vectors of all tokens: the sum of each question token's best product (MaxSim).

    Khattab and Zaharia (SIGIR 2020). The model defines the markers of questions and documents, the
    mask tokens that pad questions, and the tokens of documents to ignore (punctuation). Nothing is
    truncated: a chunk or question longer than the model's input window is encoded in segments, and
    the vectors of all segments count. With the default model, an index has 192 bytes per token.

    Attributes:
        k: Number of hits per question.
        model: A multi-vector model of sentence-transformers, PyLate or Stanford's ColBERT.
        batch_size: Number of texts per batch, sorted by length; small batches are faster on a CPU.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "batch_size")
    retrieve = retrieve_by_index

    k: Positive = 10
    model: ModelSource = "answerdotai/answerai-colbert-small-v1"
    batch_size: Positive = 8

    def load(self) -> None:
        """Loads the model, which the first call would load otherwise."""
        load_encoder("MultiVectorEncoder", self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (tokens, dimensions), and each chunk's `first` token."""
        import numpy as np

        by_chunk = self._encode([chunk.text for chunk in chunks], "document")
        first = np.cumsum([0, *map(len, by_chunk)])[:-1]
        return {"vectors": np.concatenate(by_chunk), "first": first}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks by sums of cosines; a blank question scores 0 for all."""
        scores = _maxsim(index, self._encode(questions, "query"))
        scores[[not question.strip() for question in questions]] = 0
        return best_chunks(scores, chunks, self.k)

    def _encode(
        self, texts: Sequence[str], task: Literal["query", "document"]
    ) -> list[NDArray[np.float16]]:
        """Returns the vectors of each text's tokens, of length 1."""
        import numpy as np

        model = load_encoder("MultiVectorEncoder", self.model)
        pieces = cut(model, texts, token_room(model, task))
        encode: Any = model.encode_query if task == "query" else model.encode_document
        rows = iter(
            encode(
                list(chain.from_iterable(pieces)),
                batch_size=self.batch_size,
                convert_to_numpy=True,
                show_progress_bar=False,
            )
        )
        return [np.concatenate([next(rows) for _ in group]).astype(np.float16) for group in pieces]


def _maxsim(index: Any, queries: Sequence[NDArray[np.float16]]) -> NDArray[np.float64]:  # noqa: ANN401 -- the result of `index`
    """Returns the sums of each question token's best products, shape (questions, chunks)."""
    import numpy as np

    vectors, first = index["vectors"], index["first"]
    tokens = np.concatenate(queries).astype(np.float32)
    begins = np.cumsum([0, *map(len, queries)])[:-1]
    # Chunk by chunk, since the products with all tokens of a book would fill the memory.
    sums = [
        np.add.reduceat((tokens @ chunk.astype(np.float32).T).max(axis=1), begins)
        for chunk in np.split(vectors, first[1:])
    ]
    scores: NDArray[np.float64] = np.stack(sums, axis=1).astype(np.float64).round(_TOKEN_DIGITS)
    return scores


# The other texts of a batch change the sixth digit of each of some hundred weights.
_WORD_DIGITS = 2


@dataclass(frozen=True)
class Splade:
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
    retrieve = retrieve_by_index

    model: ModelSource
    k: Positive = 10
    batch_size: Positive = 8

    def load(self) -> None:
        """Loads the model, which the first call would load otherwise."""
        load_encoder("SparseEncoder", self.model)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns the `weights` of the chunks' `words`, and the `begin` of each chunk in both."""
        matrix = self._encode([chunk.text for chunk in chunks], "document")
        return {"weights": matrix.data, "words": matrix.indices, "begin": matrix.indptr}

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k best chunks of each question; a blank question scores 0 for all."""
        from scipy.sparse import csr_array

        queries = self._encode(questions, "query")
        parts = (index["weights"], index["words"], index["begin"])
        of_chunks = csr_array(parts, shape=(len(chunks), queries.shape[1]))
        scores = (queries.astype(float) @ of_chunks.T.astype(float)).toarray().round(_WORD_DIGITS)
        scores[[not question.strip() for question in questions]] = 0
        return best_chunks(scores, chunks, self.k)

    def _encode(self, texts: Sequence[str], task: Literal["query", "document"]) -> Any:  # noqa: ANN401 -- scipy has no types
        """Returns a sparse matrix of shape (texts, vocabulary)."""
        import numpy as np
        from scipy.sparse import csr_array, vstack

        model = load_encoder("SparseEncoder", self.model)
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
