"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Prompt", "Reply", "batches"]

# What one step of writing costs besides its rows: as much as reading about so many tokens, for the
# weights are fetched from memory each time.
_STEP = 16


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
    beam or choice. A prompt that exceeds the budget alone is a batch of its own. Of all such
    batches these cost least, padding weighed against the steps of one batch more.

    Args:
        prompts: In any order; ties keep it.
        budget: Tokens, padding and tokens to come included.
        rows: Beams of each prompt that has no choices.
        new_tokens: The most that are written for such a prompt.
    """
    # Scored prompts apart from written ones: the model does one or the other with a batch.
    ordered = sorted(prompts, key=lambda p: (not p.choices, -len(p.tokens)))
    for has_choices, group in groupby(ordered, key=lambda p: bool(p.choices)):
        alike = list(group)
        steps = 1 if has_choices else max(1, new_tokens)
        costs = [prompt.cost(rows, new_tokens) for prompt in alike]
        for start, end in _cheapest(list(map(_length, alike)), costs, budget, steps):
            yield alike[start:end]


def _length(prompt: Prompt) -> int:
    return len(prompt.tokens)


def _cheapest(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], budget: int, steps: int
) -> list[tuple[int, int]]:
    """Returns where batches begin and end, such that all of them together cost least.

    Args:
        lengths: Of the prompts, longest first.
        costs: The rows and new tokens of each.
        budget: The most that a batch of several may take.
        steps: How often the model runs for a batch after it has read the prompts.
    """
    # Of the first n prompts: their cost, and where their last batch begins.
    least, begins = [0], [0]
    for end in range(1, len(lengths) + 1):
        options = [
            (least[start] + rows * lengths[start] + steps * _STEP, start)
            for start, rows in _starts(lengths, costs, budget, end)
        ]
        cost, start = min(options)
        least.append(cost)
        begins.append(start)
    cuts, end = [], len(lengths)
    while end:
        cuts.append((begins[end], end))
        end = begins[end]
    return cuts[::-1]


def _starts(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], budget: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yields where a batch that ends here may begin, and the rows that it then has."""
    rows = new = 0
    for start in range(end - 1, -1, -1):
        own, added = costs[start]
        rows, new = rows + own, max(new, added)
        if start < end - 1 and rows * (lengths[start] + new) > budget:
            return
        yield start, rows
