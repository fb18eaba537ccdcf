"""Micro-batches cost least of all that the budget allows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from readers.batching import Prompt, batches

NEW = 10


def cost(made: Sequence[Sequence[int]]) -> int:
    """Returns the padded tokens, and 16 for each step of writing."""
    return sum(len(batch) * batch[0] + 16 * NEW for batch in made)


def fits(batch: Sequence[int], budget: int) -> bool:
    """Returns whether a batch is within the budget, or one prompt."""
    return len(batch) == 1 or len(batch) * (batch[0] + NEW) <= budget


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8), st.integers(1, 1500))
def test_no_other_batches_cost_less(lengths: list[int], budget: int) -> None:
    """Of all ways to cut the sorted prompts, none that fits pads and steps less."""
    prompts = [Prompt((i,) * length) for i, length in enumerate(lengths)]
    made = [[len(p.tokens) for p in batch] for batch in batches(prompts, budget, 1, NEW)]
    ordered = sorted(lengths, reverse=True)
    for count in range(len(lengths)):
        for cuts in combinations(range(1, len(lengths)), count):
            ends = (0, *cuts, len(lengths))
            other = [ordered[a:b] for a, b in pairwise(ends)]
            if all(fits(batch, budget) for batch in other):
                assert cost(made) <= cost(other)


def test_equal_lengths_keep_their_order() -> None:
    """What is read first of equals is what was asked first."""
    prompts = [Prompt((i, i)) for i in range(20)]
    assert [p for batch in batches(prompts, 60, 1, NEW) for p in batch] == prompts
