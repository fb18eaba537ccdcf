"""Scores of choices: the probability of each as the model's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.readers.backends.padding import padded
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch

IGNORED = -100  # label of padding, also in transformers


def choice_rows(
    prompts: Sequence[ModelInput], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a row for each choice of each prompt.

    Returns:
        Indices of the prompts, shape (rows,); labels, shape (rows, longest choice), padded by -100.
    """
    import torch

    owners = [i for i, prompt in enumerate(prompts) for _ in prompt.choices]
    labels, _ = padded([c for prompt in prompts for c in prompt.choices], IGNORED, device)
    return torch.tensor(owners, device=device), labels


def scored(
    prompts: Sequence[ModelInput], logits: torch.Tensor, labels: torch.Tensor
) -> list[Generation]:
    """Returns the replies; the score of a choice is the mean log-probability of its tokens.

    The sum would penalise long choices.

    Args:
        prompts: Prompts of the rows, in order.
        logits: Logits of the label at each position, shape (rows, tokens, vocabulary).
        labels: Labels, shape (rows, tokens).
    """
    counted = labels != IGNORED
    probabilities = log_probabilities(logits, labels.clamp(min=0))
    means = iter(((probabilities * counted).sum(-1) / counted.sum(-1)).tolist())
    return [Generation(scores=tuple(next(means) for _ in prompt.choices)) for prompt in prompts]


def log_probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Returns the log-probabilities of tokens; logits have one more dimension, the vocabulary."""
    # In half precision a sum of exponentials over the vocabulary loses its digits.
    logits = logits.float()
    # log p = logit - logsumexp; log_softmax would copy the scores of the complete vocabulary
    chosen: torch.Tensor = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(-1)
