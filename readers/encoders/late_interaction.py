"""How near passages come to a question, token by token: late interaction.

Each token of the question finds the token most like it in a passage, in the contexts that both
stand in (ColBERT's MaxSim: Khattab and Zaharia, SIGIR 2020). Their mean is weighed by squared idf:
what every passage says, such as a contract's `Party`, tells nothing of whether this one answers.
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

_REMEMBERED = 2048  # texts, some 100 kB each
# What a text's batch mates change in its vectors shows in the sixth digit of a cosine.
_DIGITS = 5


@dataclass(frozen=True)
class LateInteraction(LoadedModel):
    """Compares questions with passages; a text is encoded once, and remembered within a bound.

    Attributes:
        model: Path, hub id or wheel of a transformers model that encodes texts.
        max_input_tokens: Tokens of the window, special tokens included; a longer text is read in
            several.
        batch_size: Number of windows encoded at once.
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
        """Returns what each token of the vocabulary weighs, of shape (tokens,): its squared idf.

        Args:
            passages: Passages that what is usual is learnt from; equal ones count once.
        """
        import numpy as np

        distinct = dict.fromkeys(passages)
        counts = np.zeros(len(self.tokens.tokenizer))
        for passage in distinct:
            counts[sorted(set(self._ids(passage)))] += 1
        # Squared, which gained 3 to 7 points; idf 4 to 6, equal weights 0 to 3 (decision 26).
        weights: NDArray[np.float64] = np.log((len(distinct) + 1) / (counts + 1)) ** 2
        return weights

    def nearest(
        self, question: str, passages: Sequence[str], weights: NDArray[np.float64]
    ) -> float:
        """Returns how near the nearest passage comes, at most 1; 0 where there is nothing to read.

        Args:
            question: Question whose tokens are looked for.
            passages: Passages, each compared by itself.
            weights: Weights as `weights` returns them.
        """
        [question_vectors, *passage_vectors] = self._vectors([question, *passages])
        question_weights = weights[[*self._ids(question)]]
        passage_vectors = [vectors for vectors in passage_vectors if len(vectors)]
        if not passage_vectors or not question_weights.any():
            return 0.0
        nearest = max(
            (vectors @ question_vectors.T).max(axis=0) @ question_weights
            for vectors in passage_vectors
        )
        return round(float(nearest / question_weights.sum()), _DIGITS)

    def size(self, texts: Sequence[str]) -> int:
        """Returns how many tokens these texts have, special ones left out."""
        return sum(map(len, self._vectors(texts)))

    def _ids(self, text: str) -> tuple[int, ...]:
        return self.tokens.once(lambda: _own_tokens(self._windows(text)), "own", text)

    def _windows(self, text: str) -> list[list[tuple[int, bool]]]:
        """Returns the tokens of each window, and whether they are the text's own."""
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
        """Returns the vectors of each text's tokens, of length 1 and shape (tokens, dimensions)."""
        return remembered(self._cached, texts, self._encoded, _REMEMBERED)

    def _encoded(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        import numpy as np

        windows = [self._windows(text) for text in texts]
        for text, text_windows in zip(texts, windows, strict=True):
            self.tokens.once(partial(_own_tokens, text_windows), "own", text)
        flat, size = list(chain.from_iterable(windows)), self.batch_size
        batches = (flat[start : start + size] for start in range(0, len(flat), size))
        rows = chain.from_iterable(map(self._encode, batches))
        return [np.concatenate([next(rows) for _ in text_windows]) for text_windows in windows]

    def _encode(self, windows: Sequence[list[tuple[int, bool]]]) -> list[NDArray[np.float32]]:
        import torch

        network = self._network
        ids = [[token for token, _ in window] for window in windows]
        input_ids, mask = padded(ids, self.tokens.padding, network.device)
        with torch.inference_mode():
            states: Any = network(input_ids=input_ids, attention_mask=mask).last_hidden_state
            unit = torch.nn.functional.normalize(states.float(), dim=-1).cpu().numpy()
        inner = [[index for index, (_, own) in enumerate(window) if own] for window in windows]
        return [vectors[indices] for vectors, indices in zip(unit, inner, strict=True)]


def _own_tokens(windows: Sequence[Sequence[tuple[int, bool]]]) -> list[int]:
    """Returns the text's own tokens of all its windows."""
    return [token for window in windows for token, inner in window if inner]
