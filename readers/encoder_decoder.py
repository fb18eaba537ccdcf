"""What an encoder-decoder model computes for a batch."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from readers.batching import Prompt, Reply
from readers.decoding import Decoding
from readers.padding import padded
from readers.pretrained import Tokens
from readers.scoring import choice_rows, scored

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["score", "write"]


def write(
    model: PreTrainedModel, tokens: Tokens, decoding: Decoding, prompts: Sequence[Prompt]
) -> list[Reply]:
    """Returns what the model writes."""
    import torch

    with torch.inference_mode():
        states, mask = _encoded(model, tokens, prompts)
        inputs = {"encoder_outputs": _as_output(states), "attention_mask": mask}
        return decoding.write(model, tokens, 1, inputs)  # a sequence begins with the start token


def score(model: PreTrainedModel, tokens: Tokens, prompts: Sequence[Prompt]) -> list[Reply]:
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
    model: PreTrainedModel,
    tokens: Tokens,
    prompts: Sequence[Prompt],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the encoder's states, shape (prompts, tokens, width), and their mask."""
    ids, mask = padded([prompt.tokens for prompt in prompts], tokens.padding, model.device)
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "global_attention_mask" in inspect.signature(model.forward).parameters:
        # LED: the first token alone looks everywhere, as in the official SCROLLS code.
        inputs["global_attention_mask"] = (
            mask.clone().fill_(0).index_fill_(1, mask.new_tensor(0), 1)
        )
    return model.get_encoder()(**inputs).last_hidden_state, mask


def _as_output(states: torch.Tensor) -> Any:  # noqa: ANN401 -- transformers' own record
    from transformers.modeling_outputs import BaseModelOutput

    return BaseModelOutput(last_hidden_state=states)
