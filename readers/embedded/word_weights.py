"""Readers with weights of words in the package, without a network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from leporello.core.protocols import ModelSource
from leporello.models.locate import locate


@dataclass(frozen=True)
class WordWeights:
    """Folder with `words.txt` and a weight for each of its lines.

    Attributes:
        folder: Folder, which has a `config.json`.
    """

    folder: Path

    def total(self, words: Iterable[str]) -> float:
        """Returns the sum of the bias and the weights of distinct words.

        Raises:
            UserError: The weights are missing or damaged.
        """
        weights, bias = self.loaded
        # Sorted, since the sum of floats depends on the order, and that of a set on the process.
        return bias + sum(weights.get(word, 0.0) for word in sorted({*words}))

    @cached_property
    def loaded(self) -> tuple[dict[str, float], float]:
        """Weights by word, and the bias."""
        from leporello.models.weights import ModelFolder, unpack

        folder = ModelFolder(self.folder)
        # Text and numbers, not a pickle: loading a model must not run code.
        words = folder.checked("words.txt").decode("utf-8").splitlines()
        arrays = unpack(folder.checked("weights.safetensors"))
        weights = arrays["words"][0].tolist()
        return dict(zip(words, weights, strict=True)), float(arrays["bias"][0])


@dataclass(frozen=True)
class ReadsWordWeights:
    """Base of the readers with word weights in a folder of `model`."""

    _folder: ClassVar[str]  # name of the folder within that of the model

    model: ModelSource = "leporello-en"

    def load(self) -> None:
        """Loads the weights, which `read` otherwise does on first use."""
        _ = self._weights.loaded

    @cached_property
    def _weights(self) -> WordWeights:
        return WordWeights(Path(locate(self.model)) / self._folder)
