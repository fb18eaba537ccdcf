"""What a decoder-only model computes for a batch, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from readers import decoder_only, onnxruntime_models
from readers.backends import Precision
from readers.decoder_only import score, write
from readers.decoding import Decoding
from readers.onnxruntime_caches import emptied, flat, past_of, put_back
from readers.onnxruntime_graphs import Axes, Graph
from readers.onnxruntime_models import Kind, Sessions
from readers.onnxruntime_samples import told_by

if TYPE_CHECKING:
    import torch
    from transformers import Cache, PreTrainedModel

__all__ = ["check", "load", "score", "write"]

_TYPES = ("gpt2", "llama", "mistral", "qwen2", "qwen3")


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- as each engine
    """Raises ValueError for what ONNX Runtime does not run; decoding is transformers' own."""
    onnxruntime_models.check(model, _KIND, dtype)


def load(model: str, dtype: Precision, device: str) -> PreTrainedModel:  # noqa: ARG001 -- as each engine
    """Returns the model, ready to read."""
    return onnxruntime_models.load(model, _KIND, device)


def _graphs(model: PreTrainedModel) -> list[Graph]:
    import torch
    from transformers import DynamicCache

    reach = getattr(model.config, "sliding_window", None)
    if reach is not None and reach < model.config.max_position_embeddings:
        raise ValueError("it looks back through a sliding window, which was not tried")
    cache = DynamicCache()
    begun = torch.arange(3, 13).reshape(2, 5)
    with torch.inference_mode():
        model(input_ids=begun, past_key_values=cache, use_cache=True)
    past, present = flat(cache, "past"), flat(cache, "present")
    held: Axes = {0: "rows", 2: "past"}
    grown: Axes = {0: "rows", 2: "seen"}
    return [
        Graph(
            "decoder",
            _decode,
            {
                "input_ids": begun[:, :3],
                "attention_mask": torch.ones(2, 8, dtype=torch.long),
                "position_ids": torch.arange(5, 8).repeat(2, 1),
                "kept": torch.tensor([1, 2]),
                **past,
            },
            ["logits", *present],
            {
                "input_ids": {0: "rows", 1: "tokens"},
                "attention_mask": {0: "rows", 1: "seen"},
                "position_ids": {0: "rows", 1: "tokens"},
                "kept": {0: "kept"},
                "logits": {0: "rows", 1: "kept"},
                **dict.fromkeys(past, held),
                **dict.fromkeys(present, grown),
            },
        )
    ]


def _decode(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    positions: torch.Tensor,
    kept: torch.Tensor,
    *past: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Returns the logits at some places and all keys and values, the new ones included."""
    found = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=past_of(past),
        use_cache=True,
        logits_to_keep=kept,
    )
    return (found.logits, *flat(found.past_key_values, "present").values())


def _methods(sessions: Sessions) -> Mapping[str, Callable[..., Any]]:
    def forward(
        self: PreTrainedModel,  # noqa: ARG001 -- a method's
        *,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        logits_to_keep: int = 0,
        **_: object,
    ) -> Any:  # noqa: ANN401 -- transformers' own record
        import torch
        from transformers import DynamicCache
        from transformers.modeling_outputs import CausalLMOutputWithPast

        cache = DynamicCache() if past_key_values is None else past_key_values
        rows, new = input_ids.shape
        if attention_mask is None:
            attention_mask = input_ids.new_ones(rows, cache.get_seq_length() + new)
        inputs = {
            "input_ids": input_ids,
            "attention_mask": attention_mask,
            "position_ids": position_ids,
            "kept": torch.arange(new)[-logits_to_keep:],
            **(flat(cache, "past") or emptied(sessions, "past", rows)),
        }
        logits, *present = sessions.run("decoder", inputs)
        put_back(cache, present)
        return CausalLMOutputWithPast(logits=logits, past_key_values=cache)

    return {"forward": forward}


_KIND = Kind("AutoModelForCausalLM", _TYPES, _graphs, _methods, told_by(decoder_only))
