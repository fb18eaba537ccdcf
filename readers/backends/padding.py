"""Padding of rows of different lengths to one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.readers.batching.micro_batches import MASKED, ModelInput, Segment

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
    """Returns which states the decoder sees, and their mask, both of shape (prompts, longest).

    Args:
        prompts: Prompts.
        starts: Index of the first state of each segment of all prompts.
        device: Device of the tensors.
    """
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
