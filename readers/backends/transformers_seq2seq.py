"""Batches of encoder-decoder models, computed by transformers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from leporello.readers.backends.backend import Precision, torch_dtype
from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.padding import padded
from leporello.readers.backends.pretrained import Tokens, load_model
from leporello.readers.backends.scoring import choice_rows, scored
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

# Least length in relation to the longest prompt: padding costs as much as text (decision 18).
_SIMILAR = 0.85


def check(model: str, dtype: Precision, decoding: Decoding) -> None:  # noqa: ARG001 -- the protocol of backends
    """Raises ValueError for a precision that torch lacks; all other settings are supported."""
    torch_dtype(dtype)


def load(model: str, dtype: Precision, device: str) -> PreTrainedModel:
    """Returns the model, ready to read."""
    return load_model(model, "AutoModelForSeq2SeqLM", torch_dtype(dtype), device)


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
    """Returns the encoder's states, shape (prompts, tokens, width), and their mask.

    Encoding padding wastes time, so prompts are encoded with those of similar length, although all
    are decoded together.
    """
    import torch
    from torch.nn.functional import pad

    parts = [_states(model, tokens, part) for part in _similar(prompts)]
    longest = max(mask.shape[1] for _, mask in parts)
    padded_states = [pad(s, (0, 0, 0, longest - s.shape[1])) for s, _ in parts]
    padded_masks = [pad(mask, (0, longest - mask.shape[1])) for _, mask in parts]
    return torch.cat(padded_states), torch.cat(padded_masks)


def _similar(prompts: Sequence[ModelInput]) -> Iterator[list[ModelInput]]:
    """Yields consecutive prompts of similar length; the first of a group is the longest."""
    part: list[ModelInput] = []
    for prompt in prompts:
        # A ratio, since the cost of padding grows with the length of the longest prompt.
        if part and len(prompt.tokens) < _SIMILAR * len(part[0].tokens):
            yield part
            part = []
        part.append(prompt)
    yield part


def _states(
    model: PreTrainedModel, tokens: Tokens, prompts: Sequence[ModelInput]
) -> tuple[torch.Tensor, torch.Tensor]:
    ids, mask = padded([prompt.tokens for prompt in prompts], tokens.padding, model.device)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "global_attention_mask" in inspect.signature(model.forward).parameters:
        # LED: only the first token attends globally, as in the official SCROLLS code.
        inputs["global_attention_mask"] = (
            mask.clone().fill_(0).index_fill_(1, mask.new_tensor(0), 1)
        )
    return model.get_encoder()(**inputs).last_hidden_state, mask


def _as_output(states: torch.Tensor) -> Any:  # noqa: ANN401 -- a record of transformers
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=states)
