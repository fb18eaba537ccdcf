"""What an encoder-decoder model computes for a batch, by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from readers import encoder_decoder, onnxruntime_models
from readers.backends import Precision
from readers.decoding import Decoding
from readers.encoder_decoder import score, write
from readers.onnxruntime_caches import emptied, flat, past_of, put_back
from readers.onnxruntime_graphs import Axes, Graph
from readers.onnxruntime_models import Kind, Sessions
from readers.onnxruntime_samples import told_by

if TYPE_CHECKING:
    import torch
    from transformers import EncoderDecoderCache, PreTrainedModel

__all__ = ["check", "load", "score", "write"]

_TYPES = ("bart", "mbart", "mt5", "pegasus", "t5")


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- as each engine
    """Raises ValueError for what ONNX Runtime does not run; decoding is transformers' own."""
    onnxruntime_models.check(model, _KIND, dtype)


def load(model: str, dtype: Precision, device: str) -> PreTrainedModel:  # noqa: ARG001 -- as each engine
    """Returns the model, ready to read."""
    return onnxruntime_models.load(model, _KIND, device)


def _graphs(model: PreTrainedModel) -> list[Graph]:
    """Returns the encoder; what the decoder looks up in its states, once a text; the decoder."""
    import torch

    ids, mask = torch.arange(3, 17).reshape(2, 7), torch.ones(2, 7, dtype=torch.long)
    begun = torch.arange(3, 13).reshape(2, 5)
    with torch.inference_mode():
        states = _encode(model, ids, mask)
        cache = _decoded(model, begun, states, mask, _cache()).past_key_values
    past, cross = (
        flat(cache.self_attention_cache, "past"),
        flat(cache.cross_attention_cache, "cross"),
    )
    present = list(flat(cache.self_attention_cache, "present"))
    text: Axes = {0: "rows", 1: "tokens"}
    new: Axes = {0: "rows", 1: "new"}
    known: Axes = {0: "rows", 2: "tokens"}
    held: Axes = {0: "rows", 2: "past"}
    grown: Axes = {0: "rows", 2: "seen"}
    given = {"input_ids": ids, "attention_mask": mask}
    decoder = {"decoder_input_ids": begun[:, :3], "attention_mask": mask, **past, **cross}
    return [
        Graph("encoder", _encode, given, ["states"], dict.fromkeys([*given, "states"], text)),
        Graph(
            "cross",
            _look_up,
            {"states": states},
            [*cross],
            {"states": text, **dict.fromkeys(cross, known)},
        ),
        Graph(
            "decoder",
            _decode,
            decoder,
            ["logits", *present],
            {
                "decoder_input_ids": new,
                "attention_mask": text,
                "logits": new,
                **dict.fromkeys(past, held),
                **dict.fromkeys(present, grown),
                **dict.fromkeys(cross, known),
            },
        ),
    ]


def _encode(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    states: torch.Tensor = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    return states


def _look_up(model: PreTrainedModel, states: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Returns the keys and values of the states; nothing else of this gets into the graph."""
    import torch

    mask = torch.ones_like(states[:, :, 0], dtype=torch.long)
    cache = _cache()
    _decoded(model, mask[:, :1], states, mask, cache)
    return tuple(flat(cache.cross_attention_cache, "cross").values())


def _decode(
    model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, *known: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Returns the logits and all keys and values of the text, the new ones included."""
    from transformers import EncoderDecoderCache

    half = len(known) // 2
    cache = EncoderDecoderCache(past_of(known[:half]), past_of(known[half:]))
    states = mask.unsqueeze(-1).float()  # never looked at: only how many there are
    found = _decoded(model, ids, states, mask, cache)
    return (found.logits, *flat(cache.self_attention_cache, "present").values())


def _decoded(
    model: PreTrainedModel,
    ids: torch.Tensor,
    states: torch.Tensor,
    mask: torch.Tensor,
    cache: EncoderDecoderCache,
) -> Any:  # noqa: ANN401 -- transformers' own record
    from transformers.modeling_outputs import BaseModelOutput

    return model(
        decoder_input_ids=ids,
        encoder_outputs=BaseModelOutput(last_hidden_state=states),
        attention_mask=mask,
        past_key_values=cache,
        use_cache=True,
    )


def _cache() -> EncoderDecoderCache:
    from transformers import DynamicCache, EncoderDecoderCache

    return EncoderDecoderCache(DynamicCache(), DynamicCache())


def _methods(sessions: Sessions) -> Mapping[str, Callable[..., Any]]:
    def encode(input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> Any:  # noqa: ANN401 -- transformers' own record
        import torch
        from transformers.modeling_outputs import BaseModelOutput

        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        inputs = {"input_ids": input_ids, "attention_mask": mask}
        [states] = sessions.run("encoder", inputs)
        return BaseModelOutput(last_hidden_state=states)

    def forward(
        self: Any,  # noqa: ANN401 -- a model of any class
        *,
        encoder_outputs: Any,  # noqa: ANN401 -- transformers' own record
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: torch.Tensor | None = None,
        **_: object,
    ) -> Any:  # noqa: ANN401 -- transformers' own record
        from transformers.modeling_outputs import Seq2SeqLMOutput

        cache = past_key_values or _cache()
        if labels is not None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels=labels)
        assert decoder_input_ids is not None
        text, cross = cache.self_attention_cache, cache.cross_attention_cache
        states = encoder_outputs.last_hidden_state
        if attention_mask is None:
            attention_mask = decoder_input_ids.new_ones(states.shape[:2])
        if not flat(cross, "cross"):
            put_back(cross, sessions.run("cross", {"states": states}))
        inputs = {
            "decoder_input_ids": decoder_input_ids,
            "attention_mask": attention_mask,
            **(flat(text, "past") or emptied(sessions, "past", len(decoder_input_ids))),
            **flat(cross, "cross"),
        }
        logits, *present = sessions.run("decoder", inputs)
        put_back(text, present)
        return Seq2SeqLMOutput(logits=logits, past_key_values=cache)

    return {"forward": forward, "get_encoder": lambda _: encode}


_KIND = Kind("AutoModelForSeq2SeqLM", _TYPES, _graphs, _methods, told_by(encoder_decoder))
