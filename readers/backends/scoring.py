"""Scoring choices: how likely a model finds each of them as the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.readers.backends.padding import padded
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch

IGNORED = -100  # the label, to transformers too, of what is padding


def choice_rows(
    prompts: Sequence[ModelInput], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns, a row for each choice of each prompt, whose it is and its tokens.

    Returns:
        Places in `prompts`, shape (rows,); labels, shape (rows, longest choice), -100 as padding.
    """
    import torch

    owners = [i for i, prompt in enumerate(prompts) for _ in prompt.choices]
    labels, _ = padded([c for prompt in prompts for c in prompt.choices], IGNORED, device)
    return torch.tensor(owners, device=device), labels


def scored(
    prompts: Sequence[ModelInput], logits: torch.Tensor, labels: torch.Tensor
) -> list[Generation]:
    """Returns the replies: each choice's score is the mean log-probability of its tokens.

    The mean, not the sum, so that a long choice is not the worse for its length.

    Args:
        prompts: Prompts whose choices stand in the rows, in order.
        logits: Logits of the label at each position, shape (rows, tokens, vocabulary).
        labels: Labels, shape (rows, tokens).
    """
    counted = labels != IGNORED
    likely = log_probabilities(logits, labels.clamp(min=0))
    means = iter(((likely * counted).sum(-1) / counted.sum(-1)).tolist())
    return [Generation(scores=tuple(next(means) for _ in prompt.choices)) for prompt in prompts]


def log_probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Returns those of tokens, of any shape; logits have one more dimension, the vocabulary."""
    logits = logits.float()
    # log p = logit - logsumexp: a log_softmax would copy the whole vocabulary's scores
    chosen: torch.Tensor = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(-1)
