"""Similarity of passages to a question, token by token: late interaction.

Each token of the question is compared with the most similar token of a passage, by contextual
vectors (ColBERT's MaxSim: Khattab and Zaharia, SIGIR 2020). The mean is weighted by squared idf,
since frequent words, such as `Party` in contracts, do not show whether a passage has the answer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from leporello.readers.backends.padding import padded
from leporello.readers.backends.pretrained import quiet
from leporello.readers.batching.memo import remembered
from leporello.readers.encoders.batched_model import LoadedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CACHE_SIZE = 2048  # texts of about 100 kB
# The other texts of a batch change the sixth digit of a cosine.
_DIGITS = 5


@dataclass(frozen=True)
class LateInteraction(LoadedModel):
    """Compares questions with passages, with a bounded cache of encoded texts.

    Attributes:
        model: Path, hub id or wheel of a transformers model that encodes texts.
        max_input_tokens: Size of the input window, including special tokens; a longer text is read
            in segments.
        batch_size: Number of segments that are encoded at once.
        device: Device as torch names it.
    """

    _architecture = "AutoModel"
    dtype = "float32"

    model: str
    max_input_tokens: int
    batch_size: int
    device: str
    _cached: OrderedDict[str, NDArray[np.float32]] = field(default_factory=OrderedDict, repr=False)

    def weights(self, passages: Iterable[str]) -> NDArray[np.float64]:
        """Returns the weight of each token of the vocabulary, its squared idf, of shape (tokens,).

        Args:
            passages: Passages that give the frequencies; equal ones count once.
        """
        import numpy as np

        distinct = dict.fromkeys(passages)
        counts = np.zeros(len(self.tokens.tokenizer))
        # Equal passages count once: chunks of one document recur with each of its questions.
        for passage in distinct:
            counts[sorted(set(self._ids(passage)))] += 1
        # Squared idf gained 3 to 7 points, idf 4 to 6, equal weights 0 to 3 (decision 26).
        weights: NDArray[np.float64] = np.log((len(distinct) + 1) / (counts + 1)) ** 2
        return weights

    def nearest(
        self, question: str, passages: Sequence[str], weights: NDArray[np.float64]
    ) -> float:
        """Returns the similarity of the most similar passage, at most 1; 0 without any text.

        Args:
            question: Question.
            passages: Passages, each compared separately.
            weights: Weights from `weights`.
        """
        [question_vectors, *passage_vectors] = self._vectors([question, *passages])
        question_weights = weights[[*self._ids(question)]]
        passage_vectors = [vectors for vectors in passage_vectors if len(vectors)]
        if not passage_vectors or not question_weights.any():
            return 0.0
        # The best passage, not the mean: an answer is in one place.
        nearest = max(
            (vectors @ question_vectors.T).max(axis=0) @ question_weights
            for vectors in passage_vectors
        )
        return round(float(nearest / question_weights.sum()), _DIGITS)

    def size(self, texts: Sequence[str]) -> int:
        """Returns the number of tokens of these texts, without special tokens."""
        return sum(map(len, self._vectors(texts)))

    def _ids(self, text: str) -> tuple[int, ...]:
        return self.tokens.once(lambda: _text_tokens(self._segments(text)), "own", text)

    def _segments(self, text: str) -> list[list[tuple[int, bool]]]:
        """Returns the tokens of each segment, and whether each is part of the text."""
        with quiet():
            encoded = self.tokens.tokenizer(
                self.tokens.plain(text),
                truncation=True,
                max_length=self.max_input_tokens,
                return_overflowing_tokens=True,
                split_special_tokens=True,
            )
        return [
            [(token, not added) for token, added in zip(e.ids, e.special_tokens_mask, strict=True)]
            for e in encoded.encodings
        ]

    def _vectors(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Returns the unit vectors of each text's tokens, of shape (tokens, dimensions)."""
        return remembered(self._cached, texts, self._encoded, _CACHE_SIZE)

    def _encoded(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        import numpy as np

        segments = [self._segments(text) for text in texts]
        for text, text_segments in zip(texts, segments, strict=True):
            self.tokens.once(partial(_text_tokens, text_segments), "own", text)
        flat, size = list(chain.from_iterable(segments)), self.batch_size
        batches = (flat[start : start + size] for start in range(0, len(flat), size))
        rows = chain.from_iterable(map(self._encode, batches))
        return [np.concatenate([next(rows) for _ in text_segments]) for text_segments in segments]

    def _encode(self, segments: Sequence[list[tuple[int, bool]]]) -> list[NDArray[np.float32]]:
        import torch

        network = self._network
        ids = [[token for token, _ in segment] for segment in segments]
        input_ids, mask = padded(ids, self.tokens.padding, network.device)
        with torch.inference_mode():
            states: Any = network(input_ids=input_ids, attention_mask=mask).last_hidden_state
            unit = torch.nn.functional.normalize(states.float(), dim=-1).cpu().numpy()
        inner = [[i for i, (_, in_text) in enumerate(segment) if in_text] for segment in segments]
        return [vectors[indices] for vectors, indices in zip(unit, inner, strict=True)]


def _text_tokens(segments: Sequence[Sequence[tuple[int, bool]]]) -> list[int]:
    """Returns the tokens of all segments without special tokens."""
    return [token for segment in segments for token, in_text in segment if in_text]
