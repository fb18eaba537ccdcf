"""Late chunking: embeds tokens with the text around their chunk, and pools them by chunk."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Index
from leporello.retrievers.dense import Dense
from leporello.retrievers.embedders import load_encoder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer


_OVERLAP = 0.25  # share of a segment that the next one repeats
_LONGEST = 8192  # tokens of an input window, for models without a limit


@dataclass(frozen=True)
class LateChunks(Dense):
    """Embeds a document in segments that fill the input window, and chunks as means of tokens.

    So a chunk's vector depends on the meaning of `he` and `the company` (Günther et al., 2024).
    Segments overlap; of two vectors of a token, the one with more text around it counts. A passage
    has the vector of the text of the document that it represents. For encoders with a fast
    tokenizer whose vectors are means of tokens. The text before each chunk of `Dense` is before
    each segment; `batch_size` is the number of segments per batch.
    """

    batch_size: Positive = 8

    def index(self, chunks: Sequence[Chunk]) -> Index:
        """Returns `vectors`, of shape (chunks, dimensions), in the format of `Dense`."""
        import numpy as np

        model = load_encoder("SentenceTransformer", self.model)
        encoder = _SegmentEncoder(model, self.passage_prefix)
        sums = np.zeros((len(chunks), encoder.dimensions), np.float32)
        spans = [(chunk.start, chunk.end) for chunk in chunks]
        text = chunks[0].document.text
        for places, vectors in encoder.pooled(text, spans, self.batch_size):
            sums[places] += vectors
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        return {
            "vectors": sums / np.where(lengths > 0, lengths, 1),
            "first": np.arange(len(chunks)),
        }


class _SegmentEncoder:
    """An encoder that reads a text in overlapping segments."""

    def __init__(self, model: SentenceTransformer, prefix: str) -> None:
        tokenizer: Any = model.tokenizer
        if not tokenizer.is_fast:
            raise UserError("late chunks need a model with a fast tokenizer, which has offsets")
        prompt = tokenizer(
            f"{prefix or model.prompts.get('document') or ''}a", return_special_tokens_mask=True
        )
        ids, special = prompt["input_ids"], prompt["special_tokens_mask"]
        last = max(place for place, is_special in enumerate(special) if not is_special)
        self.before, self.after = ids[:last], ids[last + 1 :]
        window = model.max_seq_length
        longest = _LONGEST if window is None or window == math.inf else int(window)
        self.room = longest - len(ids) + 1
        if self.room < 1:
            raise UserError(
                f"{prefix!r} leaves no room for text in the {longest} tokens of the input window"
            )
        self.stride = max(1, round(self.room * (1 - _OVERLAP)))
        self.model, self.tokenizer = model, tokenizer
        self.dimensions: int = self._vectors([ids])[0].shape[1]

    def pooled(
        self, text: str, spans: Sequence[tuple[int, int]], batch_size: int
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Yields for each segment the spans with tokens in it, and the sums of their vectors."""
        import numpy as np

        tokens = self.tokenizer(
            text.encode("utf-8", "replace").decode(),  # no tokenizer accepts lone surrogates
            add_special_tokens=False,
            return_offsets_mapping=True,
            verbose=False,
        )
        ids, starts = tokens["input_ids"], [start for start, _ in tokens["offset_mapping"]]
        bounds = np.searchsorted(starts, np.asarray(spans))
        segments = []
        for begin, low, high in self._segments(len(ids)):
            inside = np.clip(bounds, low, high)
            places = np.flatnonzero(inside[:, 0] < inside[:, 1])
            if len(places):  # segments without chunks are skipped
                segments.append((begin, places, inside[places] - begin))
        for at in range(0, len(segments), batch_size):
            batch = segments[at : at + batch_size]
            rows = [[*self.before, *ids[b : b + self.room], *self.after] for b, _, _ in batch]
            for (_, places, inside), vectors in zip(batch, self._vectors(rows), strict=True):
                of_text = vectors[len(self.before) :]
                yield places, np.stack([of_text[low:high].sum(axis=0) for low, high in inside])

    def _segments(self, tokens: int) -> Iterator[tuple[int, int, int]]:
        """Yields the first token of each segment, and the range of tokens that it pools."""
        # Each token is pooled from the segment in whose middle it is, with context on both sides.
        half, low = (self.room - self.stride) // 2, 0
        for begin in range(0, tokens, self.stride):
            is_last = begin + self.room >= tokens
            high = tokens if is_last else begin + self.stride + half
            yield begin, low, high
            if is_last:
                return
            low = high

    def _vectors(self, rows: Sequence[Sequence[int]]) -> list[NDArray[np.float32]]:
        import torch

        encoder: Any = self.model[0]
        padded = {"input_ids": [*rows], "attention_mask": [[1] * len(row) for row in rows]}
        features = self.tokenizer.pad(padded, return_tensors="pt", verbose=False)
        self.model.eval()
        with torch.inference_mode():
            encoded = encoder({name: row.to(self.model.device) for name, row in features.items()})
        vectors = encoded["token_embeddings"].float().cpu().numpy()
        return [of_row[: len(row)] for of_row, row in zip(vectors, rows, strict=True)]
