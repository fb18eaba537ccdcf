"""Writes folders of shipped models in the format of `leporello.models.weights`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.models.weights import LEFT, RIGHT, SCALE, Arrays


def write_model(path: Path, files: Mapping[str, bytes], config: Mapping[str, JSON]) -> None:
    """Writes a folder in the format of `ModelFolder`.

    `files` are contents by name, `config` is the content of `config.json` without their checksums.
    Other files in the folder stay.
    """
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    checksums: JSON = {n: hashlib.sha256(content).hexdigest() for n, content in files.items()}
    write_json(path / "config.json", {**config, "sha256": checksums})


def card_of(recipe: str) -> str:
    """Returns the text of the model card of a recipe, with fields for its numbers."""
    return Path(__file__).with_name(recipe).joinpath("card.md").read_text(encoding="utf-8")


def pack(weights: Arrays, differences: dict[str, tuple[Any, Any]] | None = None) -> bytes:
    """Returns weights as the content of a safetensors file, with matrices in 8 bits.

    Every row of a matrix is divided by its greatest absolute value and stored as -127 to 127.
    Arrays of one dimension are stored in 32 bits. `differences` are pairs of matrices whose product
    is added to the weight of the name.
    """
    stored: Arrays = {}
    for name, value in weights.items():
        _store(stored, name, value)
    for name, factors in (differences or {}).items():
        _store(stored, name + LEFT, factors[0])
        _store(stored, name + RIGHT, factors[1])
    return save(stored)


def _store(stored: Arrays, name: str, value: NDArray[Any]) -> None:
    if value.ndim < 2:  # noqa: PLR2004
        stored[name] = np.ascontiguousarray(value, dtype=np.float32)
        return
    scale = np.abs(value).max(axis=1, keepdims=True).astype(np.float32) / 127
    scale[scale == 0] = 1
    stored[name] = np.rint(value / scale).astype(np.int8)
    stored[name + SCALE] = scale


@dataclass(frozen=True)
class LearntWords:
    """Learnt weights of words."""

    words: list[str]  # words in the order of the weights
    weights: NDArray[np.float64]  # Weights, shape (words,)
    bias: float  # value of a text without any of the words


def write_words(learnt: LearntWords, folder: Path, card: str, config: Mapping[str, JSON]) -> None:
    """Writes words, weights, card and `config.json` into a folder."""
    arrays = {"words": learnt.weights[None], "bias": np.array([learnt.bias])}
    files = {
        "weights.safetensors": pack(arrays),
        "words.txt": "\n".join(learnt.words).encode(),
        "card.md": card.encode(),
    }
    write_model(folder, files, {"language": "en", **config})
