"""Late chunking: tokens are embedded among what stands around their chunk, and pooled by chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.passages import Passage
from leporello.core.protocols import ModelSource, Positive, Share
from leporello.core.records import Chunk, Hit, Index
from leporello.retrievers.dense import Dense
from leporello.retrievers.index.embedders import load_embedder
from leporello.retrievers.index.postings import ByIndex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

_LONGEST = 8192  # tokens of a window, where a model names no bound


@dataclass(frozen=True)
class LateChunks(ByIndex):
    """Embeds a document in windows as long as the encoder takes, and a chunk as its tokens' mean.

    So a chunk's vector knows what `he` and `the company` mean (Günther et al., 2024). Windows
    overlap; a token counts in the one where more stands around it. A passage that is no stretch of
    the document is embedded by its own text. For encoders whose vectors are means of tokens.

    Attributes:
        k: Number of chunks a question gets.
        model: An encoder of sentence-transformers or transformers with a fast tokenizer.
        query_prefix: Text before each question, as `Dense` has it.
        passage_prefix: Text before each window; if empty, the model's own prompt for documents.
        overlap: Share of a window that the next one repeats.
        batch_size: Number of windows embedded at once.
    """

    search_only: ClassVar[tuple[str, ...]] = ("k", "query_prefix", "batch_size")

    k: Positive = 10
    model: ModelSource = "all-minilm-l6-v2"
    query_prefix: str = ""
    passage_prefix: str = ""
    overlap: Share = 0.25
    batch_size: Positive = 8

    def load(self) -> None:
        """Loads the model, which is otherwise done when it is first asked."""
        load_embedder(self.model)

    def search(
        self, index: Index, questions: Sequence[str], chunks: Sequence[Chunk]
    ) -> list[list[Hit]]:
        """Returns the k nearest chunks, by cosine; a blank question is equally far from all."""
        dense = Dense(self.k, self.model, self.query_prefix, batch_size=self.batch_size)
        return dense.search(index, questions, chunks)

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (chunks, dimensions), as `Dense` does.

        Raises:
            UserError: The tokenizer does not tell where tokens stand, or the window has no room.
        """
        import numpy as np

        if not chunks:
            return {"vectors": np.zeros((0, 0), np.float32), "first": np.zeros(0, np.int64)}
        rows: dict[int, list[int]] = {}
        for number, chunk in enumerate(chunks):
            whole = chunk if isinstance(chunk, Passage) else chunk.document
            rows.setdefault(id(whole), []).append(number)
        windows = _OverlappingWindows(load_embedder(self.model), self.passage_prefix, self.overlap)
        sums = np.zeros((len(chunks), windows.dimensions), np.float32)
        for numbers in rows.values():
            text, spans = _placed([chunks[number] for number in numbers])
            for places, vectors in windows.pooled(text, spans, self.batch_size):
                np.add.at(sums, np.asarray(numbers)[places], vectors)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return {
            "vectors": sums / np.where(lengths > 0, lengths, 1),
            "first": np.arange(len(chunks)),
        }


def _placed(chunks: Sequence[Chunk]) -> tuple[str, list[tuple[int, int]]]:
    """Returns the text that chunks of one document, or one passage, stand in, and where."""
    if isinstance(chunks[0], Passage):
        return chunks[0].text, [(0, len(chunks[0].text))] * len(chunks)
    return chunks[0].document.text, [(chunk.start, chunk.end) for chunk in chunks]


class _OverlappingWindows:
    """An encoder that reads a text in windows that overlap."""

    def __init__(self, model: SentenceTransformer, prefix: str, overlap: float) -> None:
        tokenizer: Any = model.tokenizer
        if not tokenizer.is_fast:
            raise UserError("late chunks take a fast tokenizer, which tells where tokens stand")
        own = tokenizer(
            f"{prefix or model.prompts.get('document') or ''}a", return_special_tokens_mask=True
        )
        ids, special = own["input_ids"], own["special_tokens_mask"]
        last = max(place for place, added in enumerate(special) if not added)
        self.before, self.behind = ids[:last], ids[last + 1 :]
        window = model.max_seq_length
        longest = _LONGEST if window is None or window == math.inf else int(window)
        self.room = longest - len(ids) + 1
        if self.room < 1:
            raise UserError(f"{prefix!r} leaves no room in the {longest} tokens of the window")
        self.stride = max(1, round(self.room * (1 - overlap)))
        self.model, self.tokenizer = model, tokenizer
        self.dimensions: int = self._vectors([ids])[0].shape[1]

    def pooled(
        self, text: str, spans: Sequence[tuple[int, int]], batch_size: int
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Yields which spans have tokens in a window, and the sums of these tokens' vectors."""
        import numpy as np

        found = self.tokenizer(
            text.encode("utf-8", "replace").decode(),  # lone surrogates, which no tokenizer takes
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        ids, starts = found["input_ids"], [start for start, _ in found["offset_mapping"]]
        bounds = np.searchsorted(starts, np.asarray(spans))
        windows = []
        for begin, low, high in self._parts(len(ids)):
            inside = np.clip(bounds, low, high)
            places = np.flatnonzero(inside[:, 0] < inside[:, 1])
            if len(places):  # where no chunk stands, nothing is read
                windows.append((begin, places, inside[places] - begin))
        for at in range(0, len(windows), batch_size):
            some = windows[at : at + batch_size]
            read = [[*self.before, *ids[b : b + self.room], *self.behind] for b, _, _ in some]
            for (_, places, inside), vectors in zip(some, self._vectors(read), strict=True):
                own = vectors[len(self.before) :]
                yield places, np.stack([own[low:high].sum(axis=0) for low, high in inside])

    def _parts(self, tokens: int) -> Iterator[tuple[int, int, int]]:
        """Yields where each window begins, and the first and last of the tokens that it is for."""
        half, low = (self.room - self.stride) // 2, 0
        for begin in range(0, tokens, self.stride):
            last = begin + self.room >= tokens
            high = tokens if last else begin + self.stride + half
            yield begin, low, high
            if last:
                return
            low = high

    def _vectors(self, rows: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        """Returns the vectors of each row's tokens."""
        import torch

        encoder: Any = self.model[0]
        padded = {"input_ids": [*rows], "attention_mask": [[1] * len(row) for row in rows]}
        features = self.tokenizer.pad(padded, return_tensors="pt", verbose=False)
        self.model.eval()
        with torch.inference_mode():
            read = encoder({name: row.to(self.model.device) for name, row in features.items()})
        vectors = read["token_embeddings"].float().cpu().numpy()
        return [own[: len(row)] for own, row in zip(vectors, rows, strict=True)]
