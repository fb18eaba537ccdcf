"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

# What one step of writing costs besides its rows: as much as reading about so many tokens, for the
# weights are fetched from memory each time.
_STEP = 16


@dataclass(frozen=True, slots=True)
class ModelInput:
    """What the model is given for one input: equal prompts have equal answers.

    Attributes:
        tokens: Tokens of the rendered prompt, special tokens and all.
        choices: Tokens of each answer to score; none if one is to be written.
        schema: JSON Schema of what is written; empty for any text.
    """

    tokens: tuple[int, ...]
    choices: tuple[tuple[int, ...], ...] = ()
    schema: str = ""

    def cost(self, rows: int, new_tokens: int) -> tuple[int, int]:
        """Returns its rows in the model's memory (beams or choices) and the tokens each adds."""
        if self.choices:
            return len(self.choices), max(map(len, self.choices))
        return rows, new_tokens


@dataclass(frozen=True, slots=True)
class Generation:
    """What the model says to one prompt.

    Attributes:
        text: Text that the model wrote; empty where choices were scored.
        score: Mean log-probability of the tokens written.
        scores: Mean log-probability of each choice's tokens.
        output_tokens: Number of tokens that the model wrote.
    """

    text: str = ""
    score: float = 0.0
    scores: tuple[float, ...] = ()
    output_tokens: int = 0


def batches(
    prompts: Iterable[ModelInput], budget: int, rows: int, new_tokens: int
) -> Iterator[list[ModelInput]]:
    """Yields all prompts, longest first, in batches whose padded size is within the budget.

    The size is (rows x (longest prompt + most new tokens)), where a prompt takes a row for each
    beam or choice. A prompt that exceeds the budget alone is a batch of its own. Of all such
    batches these cost least, padding weighed against the steps of one batch more.

    Args:
        prompts: Prompts in any order; ties keep it.
        budget: Number of tokens in a batch at most, padding and tokens to come included.
        rows: Number of rows of each prompt that has no choices: its beams.
        new_tokens: Number of tokens that are written for such a prompt at most.
    """
    # Scored prompts apart from written ones: the model does one or the other with a batch.
    ordered = sorted(prompts, key=lambda p: (not p.choices, -len(p.tokens)))
    for has_choices, group in groupby(ordered, key=lambda p: bool(p.choices)):
        alike = list(group)
        steps = 1 if has_choices else max(1, new_tokens)
        costs = [prompt.cost(rows, new_tokens) for prompt in alike]
        lengths = [len(prompt.tokens) for prompt in alike]
        for start, end in _cheapest(lengths, costs, budget, steps):
            yield alike[start:end]


def _cheapest(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], budget: int, steps: int
) -> list[tuple[int, int]]:
    """Returns where batches begin and end, such that all of them together cost least.

    A batch costs its rows times its first length, and the steps. The cheapest batches up to each
    prompt are found from those up to the prompts before it; of equal costs the earliest start is
    taken.

    Args:
        lengths: Lengths of the prompts, in tokens, longest first.
        costs: Rows and new tokens of each prompt.
        budget: Number of tokens that a batch of several may take at most.
        steps: Number of times that the model runs for a batch after it has read the prompts.
    """
    import numpy as np

    longest, (counts, new_tokens) = np.array(lengths), np.array(costs).T
    rows = np.concatenate([[0], np.cumsum(counts)])
    least = np.zeros(len(rows), dtype=np.int64)  # the cost of the prompts up to each
    most_new = np.zeros_like(longest)  # tokens of a batch from each start
    begins = [0]
    first = 0  # the earliest start within budget, which only moves on
    for end in range(1, len(rows)):
        starts = slice(first, end)
        most_new[starts] = np.maximum(most_new[starts], new_tokens[end - 1])
        taken = rows[end] - rows[starts]
        fits = taken * (longest[starts] + most_new[starts]) <= budget
        fits[-1] = True  # a prompt alone is a batch in any case
        first += int(fits.argmax())
        starts = slice(first, end)
        sums = least[starts] + (rows[end] - rows[starts]) * longest[starts]
        begins.append(first + int(sums.argmin()))
        least[end] = sums.min() + steps * _STEP
    cuts, end = [], len(lengths)
    while end:
        cuts.append((begins[end], end))
        end = begins[end]
    return cuts[::-1]
