"""What a decoder remembers of the tokens it has seen, as a graph's inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from readers.onnxruntime_models import Sessions

if TYPE_CHECKING:
    import torch
    from transformers import Cache, DynamicCache

__all__ = ["emptied", "flat", "past_of", "put_back"]


def flat(cache: Cache, name: str) -> dict[str, torch.Tensor]:
    """Returns the keys and values of each layer, of shape (rows, heads, tokens, width).

    Args:
        cache: A decoder's; one that has seen nothing has none.
        name: With which theirs begin.
    """
    layers: Sequence[Any] = cache.layers
    return {
        f"{name}.{number}.{part}": getattr(layer, part)
        for number, layer in enumerate(layers)
        if layer.is_initialized
        for part in ("keys", "values")
    }


def past_of(tensors: Sequence[torch.Tensor]) -> DynamicCache:
    """Returns a cache of keys and values in turn."""
    from transformers import DynamicCache

    cache = DynamicCache()
    put_back(cache, tensors)
    return cache


def put_back(cache: Cache, tensors: Sequence[torch.Tensor]) -> None:
    """Replaces what a cache holds by keys and values in turn."""
    layers: Sequence[Any] = cache.layers
    pairs = zip(tensors[::2], tensors[1::2], strict=True)
    for number, (keys, values) in enumerate(pairs):
        if number < len(layers) and layers[number].is_initialized:
            layers[number].keys, layers[number].values = keys, values
        else:
            cache.update(keys, values, number)


def emptied(sessions: Sessions, name: str, rows: int) -> dict[str, torch.Tensor]:
    """Returns the keys and values of no tokens, as the graph `decoder` wants them."""
    import torch

    shapes = sessions.shapes("decoder").items()
    return {
        given: torch.zeros(rows, int(heads), 0, int(width))
        for given, (_, heads, _, width) in ((n, s) for n, s in shapes if n.startswith(f"{name}."))
    }
