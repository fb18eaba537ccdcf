"""What a masked model computes for rows with some of their tokens hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from leporello.readers.backends.padding import padded
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Masked(ModelInput):
    """A row with some of its tokens hidden.

    Attributes:
        hidden: Positions of the hidden tokens, ascending.
    """

    hidden: tuple[int, ...] = ()


def rows_of(
    tokens: tuple[int, ...], positions: Sequence[int], masks: int, seed: int
) -> list[Masked]:
    """Returns rows in which every one of these positions is hidden once.

    Args:
        tokens: Tokens of the whole row.
        positions: Positions that are to be hidden.
        masks: Number of tokens hidden in a row; more than one are drawn by chance, which depends
            on the seed and the number of positions alone.
        seed: Seed of the chance.
    """
    order = list(positions)
    if masks > 1:
        Random(f"{seed}/{len(order)}").shuffle(order)
    starts = range(0, len(order), masks)
    return [Masked(tokens, hidden=tuple(sorted(order[i : i + masks]))) for i in starts]


def answer(
    model: PreTrainedModel, mask: int, padding: int, batch: Sequence[ModelInput]
) -> list[Generation]:
    """Returns the log-probabilities of what is hidden in each row.

    Args:
        model: Model that is asked for the words at hidden positions, and for no others.
        mask: Token that hides.
        padding: Token that fills up rows.
        batch: Rows of `Masked`.
    """
    import torch

    ids, seen = padded([prompt.tokens for prompt in batch], padding, model.device)
    hidden = [row.hidden for row in batch if isinstance(row, Masked)]
    rows = torch.tensor([n for n, row in enumerate(hidden) for _ in row], device=ids.device)
    positions = torch.tensor([position for row in hidden for position in row], device=ids.device)
    original = ids[rows, positions]
    ids[rows, positions] = mask
    inputs = {"input_ids": ids} if seen.all() else {"input_ids": ids, "attention_mask": seen}
    with torch.inference_mode():
        logits = _logits(model, inputs, rows, positions).float()
        hidden_logits = logits.gather(-1, original.unsqueeze(-1)).squeeze(-1)
        likely = iter((hidden_logits - logits.logsumexp(-1)).tolist())
    return [Generation(scores=tuple(next(likely) for _ in row)) for row in hidden]


def _logits(
    model: PreTrainedModel, arguments: dict[str, Any], rows: torch.Tensor, positions: torch.Tensor
) -> torch.Tensor:
    """Returns the logits at these places only, shape (places, vocabulary).

    The last layer, which knows every word, is given no other place: for a row of 512 tokens of
    which one is hidden it would be most of what is kept in memory, and much of the work.
    """

    def choose(_: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        states, *others = inputs
        return (states[rows, positions], *others)

    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]  # transformers leaves it so
    hook = head.register_forward_pre_hook(choose) if head is not None else None
    try:
        logits: torch.Tensor = model(**arguments).logits
    finally:
        if hook:
            hook.remove()
    # A model that has no such layer, or uses its weights alone, says all it knows.
    return logits if logits.dim() == 2 else logits[rows, positions]  # noqa: PLR2004 -- chosen already
