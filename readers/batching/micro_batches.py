"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

# Fixed cost of one decoding step, in tokens: each step fetches all weights from memory.
_STEP = 16


MASKED = -1  # padding within a segment, which the encoder does not attend to


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens that an encoder reads at once, of whose states the decoder sees a range.

    Attributes:
        tokens: Tokens, including special tokens; `MASKED` is padding.
        start: Position of the first state that the decoder sees.
        end: Position after the last state that the decoder sees.
    """

    tokens: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ModelInput:
    """The model's input for one read; equal inputs have equal replies.

    Attributes:
        tokens: Tokens of the rendered prompt, including special tokens.
        choices: Tokens of each answer to score; empty if the model generates the answer.
        schema: JSON Schema of the generated answer; empty for any text.
        segments: Segments that an encoder reads apart; the decoder sees a state of them for each
            token. Empty if the encoder reads the tokens at once.
    """

    tokens: tuple[int, ...]
    choices: tuple[tuple[int, ...], ...] = ()
    schema: str = ""
    segments: tuple[Segment, ...] = ()

    @property
    def encoded(self) -> tuple[Segment, ...]:
        """Segments for the encoder; one with all tokens if they are read at once."""
        return self.segments or (Segment(self.tokens, 0, len(self.tokens)),)

    def cost(self, rows: int, new_tokens: int) -> tuple[int, int]:
        """Returns the number of rows (beams or choices), and the new tokens of each row."""
        if self.choices:
            return len(self.choices), max(map(len, self.choices))
        # All tokens that may be generated, since memory must hold the longest answer.
        return rows, new_tokens


@dataclass(frozen=True, slots=True)
class Generation:
    """The model's reply to one prompt.

    Attributes:
        text: Generated text; empty if choices were scored.
        score: Mean log-probability of the generated tokens.
        scores: Mean log-probability of each choice's tokens.
        output_tokens: Number of generated tokens.
    """

    text: str = ""
    score: float = 0.0
    scores: tuple[float, ...] = ()
    output_tokens: int = 0


def batches(
    prompts: Iterable[ModelInput], budget: int, rows: int, new_tokens: int
) -> Iterator[list[ModelInput]]:
    """Yields all prompts, longest first, in batches whose padded size is within the budget.

    The size is rows x (longest prompt + most new tokens), with a row for each beam or choice of a
    prompt. A prompt that exceeds the budget is a batch on its own. The division into batches has
    the lowest cost, which includes padding and the decoding steps of each batch.

    Args:
        prompts: Prompts in any order; prompts of equal length stay in this order.
        budget: Maximum number of tokens per batch, including padding and new tokens.
        rows: Number of beams of a prompt without choices.
        new_tokens: Maximum number of tokens to generate for such a prompt.
    """
    # Separate batches, since the model either scores or generates for a complete batch.
    # Longest first, so that a lack of memory mostly shows in the first batch.
    ordered = sorted(prompts, key=lambda p: (not p.choices, -len(p.tokens)))
    for has_choices, group in groupby(ordered, key=lambda p: bool(p.choices)):
        members = list(group)
        steps = 1 if has_choices else max(1, new_tokens)
        costs = [prompt.cost(rows, new_tokens) for prompt in members]
        lengths = [len(prompt.tokens) for prompt in members]
        for start, end in _cheapest(lengths, costs, budget, steps):
            yield members[start:end]


def _cheapest(
    lengths: Sequence[int], costs: Sequence[tuple[int, int]], budget: int, steps: int
) -> list[tuple[int, int]]:
    """Returns the batches of prompts, longest first, that together cost least, as (start, end).

    The cost of a batch is its rows times its longest length, plus its steps. Dynamic programming
    finds the cheapest batches up to each prompt; the earliest start wins among equal costs.
    """
    import numpy as np

    longest, (counts, new_tokens) = np.array(lengths), np.array(costs).T
    rows = np.concatenate([[0], np.cumsum(counts)])
    least = np.zeros(len(rows), dtype=np.int64)  # lowest cost of the prompts before each end
    most_new = np.zeros_like(longest)  # new tokens of a batch from each start
    begins = [0]
    first = 0  # earliest start within the budget, which never decreases
    for end in range(1, len(rows)):
        starts = slice(first, end)
        most_new[starts] = np.maximum(most_new[starts], new_tokens[end - 1])
        sizes = (rows[end] - rows[starts]) * (longest[starts] + most_new[starts])
        fits = sizes <= budget
        # Otherwise prompts over the budget could never be read.
        fits[-1] = True  # a single prompt is always a batch
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
