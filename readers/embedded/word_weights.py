"""Weights of words: what comes with the package and needs no network."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path


@dataclass(frozen=True)
class WordWeights:
    """A shipped folder with `words.txt` and a weight for each of its lines.

    Attributes:
        folder: Folder with its `config.json`.
    """

    folder: Path

    def total(self, words: Iterable[str]) -> float:
        """Returns the bias and the weights of the words that are known, each once.

        Raises:
            UserError: The weights are missing or damaged.
        """
        weights, bias = self.loaded
        # Sorted: a sum of floats depends on the order, and that of a set on the process.
        return bias + sum(weights.get(word, 0.0) for word in sorted({*words}))

    @cached_property
    def loaded(self) -> tuple[dict[str, float], float]:
        """The weights by word, and the bias."""
        from leporello.models.weights import ModelFolder, unpack

        folder = ModelFolder(self.folder)
        words = folder.checked("words.txt").decode("utf-8").splitlines()
        arrays = unpack(folder.checked("weights.safetensors"))
        weights = arrays["words"][0].tolist()
        return dict(zip(words, weights, strict=True)), float(arrays["bias"][0])
