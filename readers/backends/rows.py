"""Rows of tokens as tensors: padding, and scores of choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.readers.batching.micro_batches import MASKED, Generation, ModelInput, Segment

if TYPE_CHECKING:
    import torch


def padded(
    rows: Sequence[Sequence[int]], filler: int, device: torch.device, *, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the rows and their mask, 0 for padding, both of shape (rows, longest)."""
    import torch

    longest = max(map(len, rows))
    # Filled on the CPU: a copy per row to a GPU would take longer than one of the whole tensor.
    ids = torch.full((len(rows), longest), filler)
    mask = torch.zeros((len(rows), longest), dtype=torch.long)
    for i, row in enumerate(rows):
        # Generation continues at the last position, so decoders need their padding in front.
        start = longest - len(row) if left else 0
        ids[i, start : start + len(row)] = torch.tensor(row)
        mask[i, start : start + len(row)] = 1
    return ids.to(device), mask.to(device)


def encoder_rows(
    segments: Sequence[Segment], filler: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the segments and their mask, both of shape (segments, longest)."""
    ids, mask = padded([segment.tokens for segment in segments], MASKED, device)
    masked = ids == MASKED
    return ids.masked_fill(masked, filler), mask.masked_fill(masked, 0)


def decoder_places(
    prompts: Sequence[ModelInput], starts: Sequence[int], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns which states the decoder sees, and their mask, both of shape (prompts, longest)."""
    remaining = iter(starts)
    rows = [
        [
            place
            for segment, start in zip(prompt.encoded, remaining, strict=False)
            for place in range(start + segment.start, start + segment.end)
        ]
        for prompt in prompts
    ]
    return padded(rows, 0, device)


IGNORED = -100  # label of padding, also in transformers


def choice_rows(
    prompts: Sequence[ModelInput], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the prompts' indices and the labels, shape (rows, longest choice), of all choices."""
    import torch

    owners = [i for i, prompt in enumerate(prompts) for _ in prompt.choices]
    labels, _ = padded([c for prompt in prompts for c in prompt.choices], IGNORED, device)
    return torch.tensor(owners, device=device), labels


def scored(
    prompts: Sequence[ModelInput], logits: torch.Tensor, labels: torch.Tensor
) -> list[Generation]:
    """Returns the replies; the score of a choice is the mean log-probability of its tokens.

    The sum would penalise long choices. The logits of labels have the shape (rows, tokens,
    vocabulary), the labels (rows, tokens).
    """
    counted = labels != IGNORED
    probabilities = log_probabilities(logits, labels.clamp(min=0))
    # Clamped labels of padding have some probability too, which the mask removes.
    means = iter(((probabilities * counted).sum(-1) / counted.sum(-1)).tolist())
    return [Generation(scores=tuple(next(means) for _ in prompt.choices)) for prompt in prompts]


def log_probabilities(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Returns the log-probabilities of tokens; logits have one more dimension, the vocabulary."""
    # A sum of 50,000 exponentials loses its last digits in half precision.
    logits = logits.float()
    # log p = logit - logsumexp; log_softmax would copy the scores of the complete vocabulary
    chosen: torch.Tensor = logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    return chosen - logits.logsumexp(-1)
