"""Batches of decoder-only models, computed by transformers."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.readers.backends.decoding import Decoding
from leporello.readers.backends.pretrained import DType, Tokens, load_model
from leporello.readers.backends.rows import IGNORED, choice_rows, padded, scored
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def check(model: str, dtype: DType, decoding: Decoding) -> None:
    """Does nothing, since transformers supports all settings."""


def load(model: str, dtype: DType, device: str) -> PreTrainedModel:
    """Returns the model, ready to read."""
    return load_model(model, "AutoModelForCausalLM", dtype, device)


def write(
    model: PreTrainedModel, tokens: Tokens, decoding: Decoding, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the texts that the model generates."""
    import torch

    with torch.inference_mode():
        rows = [prompt.tokens for prompt in prompts]
        # On the left, since generation continues each row at its end.
        ids, mask = padded(rows, tokens.padding, model.device, left=True)
        inputs = {"input_ids": ids, "attention_mask": mask}
        schemas = [prompt.schema for prompt in prompts]
        return decoding.write(model, tokens, ids.shape[1], inputs, schemas)


def score(
    model: PreTrainedModel, tokens: Tokens, prompts: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the scores of the choices; each prompt is read once."""
    import torch

    with torch.inference_mode():
        texts = [prompt.tokens for prompt in prompts]
        ids, mask = padded(texts, tokens.padding, model.device, left=True)
        rows, labels = choice_rows(prompts, ids.device)
        return scored(prompts, _choice_logits(model, ids, mask, rows, labels), labels)


def _choice_logits(
    model: PreTrainedModel,
    ids: torch.Tensor,
    mask: torch.Tensor,
    rows: torch.Tensor,
    labels: torch.Tensor,
) -> torch.Tensor:
    """Returns the logits of each label, shape (rows, tokens, vocabulary)."""
    import torch

    takes = "logits_to_keep" in inspect.signature(model.forward).parameters
    # Only the last position predicts; logits of all positions would fill the memory.
    last = {"logits_to_keep": 1} if takes else {}
    prompts = model(**_inputs(model, ids, mask), use_cache=True, **last)
    first: torch.Tensor = prompts.logits[rows, -1:]
    before = labels[:, :-1]
    if not before.shape[1]:
        return first
    cache = prompts.past_key_values
    # The state of a prompt is copied for each choice, so the prompt is read once (decision 18).
    cache.batch_select_indices(rows)
    visible = torch.cat([mask[rows], (before != IGNORED).long()], dim=1)
    later = model(**_inputs(model, before.clamp(min=0), visible), past_key_values=cache).logits
    return torch.cat([first, later], dim=1)


def _inputs(
    model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Returns the ids, the mask of all tokens so far, and positions that skip padding."""
    inputs = {"input_ids": ids, "attention_mask": mask}
    if "position_ids" in inspect.signature(model.forward).parameters:
        # Padding in front would otherwise shift positions, and answers would depend on the batch.
        inputs["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
    return inputs
