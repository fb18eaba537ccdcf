"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Prompt", "Reply", "batches", "run_halving"]

_log = logging.getLogger("leporello")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given for one input: equal prompts have equal answers.

    Attributes:
        tokens: Of the rendered prompt, special tokens and all.
        choices: The tokens of each answer to score; none if one is to be written.
    """

    tokens: tuple[int, ...]
    choices: tuple[tuple[int, ...], ...] = ()

    def cost(self, rows: int, new_tokens: int) -> tuple[int, int]:
        """Returns its rows in the model's memory (beams or choices) and the tokens each adds."""
        if self.choices:
            return len(self.choices), max(map(len, self.choices))
        return rows, new_tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says to one prompt.

    Attributes:
        text: Written by the model; empty where choices were scored.
        score: The mean log-probability of the tokens written.
        scores: The mean log-probability of each choice's tokens.
        output_tokens: Written by the model.
    """

    text: str = ""
    score: float = 0.0
    scores: tuple[float, ...] = ()
    output_tokens: int = 0


def batches(
    prompts: Iterable[Prompt], budget: int, rows: int, new_tokens: int
) -> Iterator[list[Prompt]]:
    """Yields all prompts, longest first, in batches whose padded size is within the budget.

    The size is (rows x (longest prompt + most new tokens)), where a prompt takes a row for each
    beam or choice. A prompt that exceeds the budget alone is a batch of its own.

    Args:
        prompts: In any order; ties keep it.
        budget: Tokens, padding and tokens to come included.
        rows: Beams of each prompt that has no choices.
        new_tokens: The most that are written for such a prompt.
    """
    batch: list[Prompt] = []
    taken = added = 0
    # Scored prompts apart from written ones: the model does one or the other with a batch.
    for prompt in sorted(prompts, key=lambda p: (not p.choices, -len(p.tokens))):
        own, new = prompt.cost(rows, new_tokens)
        longest = max(len(prompt.tokens), len(batch[0].tokens) if batch else 0)
        size = (taken + own) * (longest + max(added, new))
        if batch and (size > budget or bool(prompt.choices) != bool(batch[0].choices)):
            yield batch
            batch, taken, added = [], 0, 0
        batch.append(prompt)
        taken, added = taken + own, max(added, new)
    if batch:
        yield batch


def run_halving(
    batch: Sequence[Prompt], answer: Callable[[Sequence[Prompt]], list[Reply]]
) -> list[Reply]:
    """Returns the answers; a batch that exhausts the memory is halved, and its halves likewise.

    Raises:
        RuntimeError: The memory does not suffice for one prompt.
    """
    try:
        return answer(batch)
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        if len(batch) == 1 or not _out_of_memory(error):
            raise
    # Outside the handler, whose traceback would keep the failed batch's tensors alive.
    _free_memory()
    middle = len(batch) // 2
    _log.warning("out of memory with a batch of %d: going on with halves", len(batch))
    return [*run_halving(batch[:middle], answer), *run_halving(batch[middle:], answer)]


def _out_of_memory(error: RuntimeError) -> bool:
    said = str(error).lower()
    # The words of CUDA, MPS and ROCm; and of the CPU allocator.
    return "out of memory" in said or "can't allocate memory" in said


def _free_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
