"""Batches of encoder-decoder models, computed by transformers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import DType, Tokens, load_model
from leporello.readers.backends.rows import choice_rows, decoder_places, encoder_rows, scored
from leporello.readers.batching.micro_batches import Generation, ModelInput, Segment

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Tokens that are encoded at once if prompts have segments: their number is in no budget, and a
# document of 16,000 tokens has overlapping segments of three times as many.
_SEGMENT_TOKENS = 4096


def check(model: str, dtype: DType, decoding: Decoding) -> None:
    """Does nothing, since transformers supports all settings."""


def load(model: str, dtype: DType, device: str) -> PreTrainedModel:
    """Returns the model, ready to read."""
    return load_model(model, "AutoModelForSeq2SeqLM", dtype, device)


def write(
    model: PreTrainedModel, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the texts that the model generates."""
    import torch

    with torch.inference_mode():
        states, mask = _encoded(model, tokens, prompts)
        inputs = {"encoder_outputs": _as_output(states), "attention_mask": mask}
        schemas = [prompt.schema for prompt in prompts]
        # The only input token of a sequence is the start token.
        return decoding.write(model, tokens, 1, inputs, schemas)


def score(
    model: PreTrainedModel, tokens: Tokens, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the choices' scores; each prompt is encoded once."""
    import torch

    with torch.inference_mode():
        states, mask = _encoded(model, tokens, prompts)
        rows, labels = choice_rows(prompts, mask.device)
        logits = model(
            encoder_outputs=_as_output(states[rows]),
            attention_mask=mask[rows],
            labels=labels,
            use_cache=False,
        ).logits
        return scored(prompts, logits, labels)


def _encoded(
    model: PreTrainedModel, tokens: Tokens, prompts: Sequence[ModelInput]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the encoder's states, shape (prompts, tokens, width), and their mask."""
    import torch

    segments = [segment for prompt in prompts for segment in prompt.encoded]
    size = len(segments)
    if any(prompt.segments for prompt in prompts):
        size = max(1, _SEGMENT_TOKENS // max(len(segment.tokens) for segment in segments))
    states: list[torch.Tensor] = []
    starts: list[int] = []
    for first in range(0, len(segments), size):
        encoded = _states(model, tokens, segments[first : first + size])
        rows, length, _ = encoded.shape
        before = sum(map(len, states))
        starts += range(before, before + rows * length, length)
        states.append(encoded.flatten(0, 1))
    places, mask = decoder_places(prompts, starts, model.device)
    return torch.cat(states)[places], mask


def _states(model: PreTrainedModel, tokens: Tokens, segments: Sequence[Segment]) -> torch.Tensor:
    ids, mask = encoder_rows(segments, tokens.padding, model.device)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "global_attention_mask" in inspect.signature(model.forward).parameters:
        # LED: only the first token attends globally, as in the official SCROLLS code.
        inputs["global_attention_mask"] = (
            mask.clone().fill_(0).index_fill_(1, mask.new_tensor(0), 1)
        )
    states: torch.Tensor = model.get_encoder()(**inputs).last_hidden_state
    return states


def _as_output(states: torch.Tensor) -> Any:  # noqa: ANN401 -- a record of transformers
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=states)
