"""The likeliest span of each row, by the logits of where answers begin and end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def best_spans(
    starts: torch.Tensor, ends: torch.Tensor, allowed: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the best pair of a start and an end of each row, by the sum of their logits.

    Of equal pairs it is the one that begins first, and of these the shortest.

    Args:
        starts: Logits of the first token, shape (rows, tokens).
        ends: Logits of the last token, shape (rows, tokens).
        allowed: Whether an answer may begin or end at a token, shape (rows, tokens).
        longest: Number of tokens from the start to the end at most, both included.

    Returns:
        The sums, -inf where no pair is allowed; the first tokens; the last tokens: all of shape
        (rows,).
    """
    import torch

    longest = min(longest, starts.shape[1])
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    # A view: the ends that each start can reach, shape (rows, tokens, longest).
    reached = torch.nn.functional.pad(ends, (0, longest - 1), value=-torch.inf).unfold(
        1, longest, 1
    )
    further = reached.argmax(-1)  # argmax, unlike max, is documented to take the first of equals
    sums = starts + reached.gather(-1, further[..., None]).squeeze(-1)
    first = sums.argmax(-1, keepdim=True)
    last = first + further.gather(-1, first)
    return sums.gather(-1, first).squeeze(-1), first.squeeze(-1), last.squeeze(-1)
