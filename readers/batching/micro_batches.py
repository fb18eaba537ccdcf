"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

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
        for start, end in _cheapest(list(map(_length, alike)), costs, budget, steps):
            yield alike[start:end]


def _length(prompt: ModelInput) -> int:
    return len(prompt.tokens)


def _cheapest(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], budget: int, steps: int
) -> list[tuple[int, int]]:
    """Returns where batches begin and end, such that all of them together cost least.

    A batch costs its rows times its first length, and the steps. Lengths fall, so a later start is
    cheaper than an earlier one from some end on, and stays so: the starts that may still be best
    stand in a queue, each with the end from which it beats the one before it (Galil and Park,
    1992, on convex least-weight subsequences). Of equal costs the earliest start is taken.

    Args:
        lengths: Lengths of the prompts, in tokens, longest first.
        costs: Rows and new tokens of each prompt.
        budget: Number of tokens that a batch of several may take at most.
        steps: Number of times that the model runs for a batch after it has read the prompts.
    """
    rows = [0, *accumulate(count for count, _ in costs)]
    too_far = _too_far(lengths, costs, rows, budget)
    fixed: list[int] = []  # what a batch from each start costs besides length x rows[end]

    def beats(later: int, earlier: int) -> int:
        """Returns the end from which the later start is cheaper, or the only one within budget."""
        shorter, dearer = lengths[earlier] - lengths[later], fixed[later] - fixed[earlier]
        if shorter:
            return min(too_far[earlier], bisect_right(rows, dearer // shorter))
        return too_far[earlier] if dearer >= 0 else 0

    queue: deque[tuple[int, int]] = deque()
    begins, least = [0], 0  # of the first prompts: where their last batch begins, what all cost
    for new, length in enumerate(lengths):
        fixed.append(least + steps * _STEP - rows[new] * length)
        while queue and beats(new, queue[-1][0]) <= queue[-1][1]:
            queue.pop()
        queue.append((new, beats(new, queue[-1][0]) if queue else 0))
        while len(queue) > 1 and queue[1][1] <= new + 1:
            queue.popleft()
        start = queue[0][0]
        begins.append(start)
        least = fixed[start] + rows[new + 1] * lengths[start]
    cuts, end = [], len(lengths)
    while end:
        cuts.append((begins[end], end))
        end = begins[end]
    return cuts[::-1]


def _too_far(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], rows: Sequence[int], budget: int
) -> list[int]:
    """Returns for each start the first end up to which a batch would exceed the budget.

    Args:
        lengths: Lengths of the prompts, in tokens, longest first.
        costs: Rows and new tokens of each prompt.
        rows: Number of rows of the prompts before each, and of all.
        budget: Number of tokens that a batch of several may take at most.
    """
    count = len(lengths)
    ends = [count + 1] * count
    longest: deque[int] = deque()  # prompts whose new tokens may be the most: fewer and fewer
    start = 0
    for end in range(1, count + 1):
        while longest and costs[longest[-1]][1] <= costs[end - 1][1]:
            longest.pop()
        longest.append(end - 1)
        while start < end - 1:
            new = costs[longest[0]][1]
            if (rows[end] - rows[start]) * (lengths[start] + new) <= budget:
                break
            ends[start] = end
            start += 1
            if longest[0] < start:
                longest.popleft()
    return ends
