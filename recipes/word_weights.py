"""Writes the models of recipes that learn word weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.core.records import JSON
from recipes.weights import pack, write_model


@dataclass(frozen=True)
class LearntWords:
    """Learnt weights of words.

    Attributes:
        words: Words in the order of the weights.
        weights: Weights, shape (words,).
        bias: Value of a text without any of the words.
    """

    words: list[str]
    weights: NDArray[np.float64]
    bias: float


def write_words(learnt: LearntWords, folder: Path, card: str, config: Mapping[str, JSON]) -> None:
    """Writes words, weights, card and `config.json` into a folder."""
    arrays = {"words": learnt.weights[None], "bias": np.array([learnt.bias])}
    files = {
        "weights.safetensors": pack(arrays),
        "words.txt": "\n".join(learnt.words).encode(),
        "card.md": card.encode(),
    }
    write_model(folder, files, {"language": "en", **config})
