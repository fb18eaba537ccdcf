"""Translates names of weights between PyTorch and the shipped files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from leporello.models.weights import Arrays

_EMBEDDINGS = {
    "words": "word_embeddings.weight",
    "positions": "position_embeddings.weight",
    "types.weight": "token_type_embeddings.weight",
    "norm.weight": "LayerNorm.weight",
    "norm.bias": "LayerNorm.bias",
}
_PARTS = {
    "out": "attention.output.dense",
    "out.norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "narrow.norm": "output.LayerNorm",
}
_JOINED = ("query", "key", "value")


def shipped_names(state: Mapping[str, torch.Tensor], layers: int) -> Arrays:
    """Returns the weights of a network under their names in the shipped files.

    Matrices have one row per output, as in PyTorch; query, key and value form one matrix.
    """
    plain = {name: value.float().numpy() for name, value in state.items()}
    weights = {short: plain[long] for short, long in _pairs(layers)}
    for number in range(layers):
        for kind in ("weight", "bias"):
            parts = [plain[name] for name in _attention(number, kind)]
            weights[f"layer.{number}.attention.{kind}"] = np.concatenate(parts)
    heads = {name: value for name, value in plain.items() if not name.startswith("encoder.")}
    return {**weights, **heads}


def restored(weights: Mapping[str, NDArray[Any]], layers: int) -> dict[str, torch.Tensor]:
    """Returns shipped weights under their names in a network."""
    long_names = dict(_pairs(layers))
    state = {}
    for name, value in weights.items():
        if ".attention." not in name:
            state[long_names.get(name, name)] = torch.from_numpy(value)
            continue
        _, number, _, kind = name.split(".")
        for part, long in zip(np.split(value, 3), _attention(int(number), kind), strict=True):
            state[long] = torch.from_numpy(part)
    return state


def is_transposed(name: str, value: NDArray[Any]) -> bool:
    """Returns whether the graph multiplies by a weight, and so needs one column per output."""
    return value.ndim > 1 and name not in _EMBEDDINGS


def _pairs(layers: int) -> Iterator[tuple[str, str]]:
    for short, long in _EMBEDDINGS.items():
        yield short, f"encoder.embeddings.{long}"
    for number in range(layers):
        for short, long in _PARTS.items():
            for kind in ("weight", "bias"):
                yield (
                    f"layer.{number}.{short}.{kind}",
                    f"encoder.encoder.layer.{number}.{long}.{kind}",
                )


def _attention(number: int, kind: str) -> list[str]:
    return [f"encoder.encoder.layer.{number}.attention.self.{part}.{kind}" for part in _JOINED]
