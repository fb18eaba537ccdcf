"""Micro-batches: prompts sorted by length and packed under a budget of padded tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

_STEP = 16  # fixed cost of one decoding step, in tokens: each step fetches all weights from memory
MASKED = -1  # padding within a segment, which the encoder does not attend to


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens that an encoder reads at once, of whose states the decoder sees a range."""

    tokens: tuple[int, ...]  # including special tokens; `MASKED` is padding
    start: int  # position of the first state that the decoder sees
    end: int  # position after the last one


@dataclass(frozen=True, slots=True)
class ModelInput:
    """The model's input for one read; equal inputs have equal replies."""

    tokens: tuple[int, ...]  # tokens of the rendered prompt, including special tokens
    choices: tuple[tuple[int, ...], ...] = ()  # tokens of answers to score; empty to generate
    schema: str = ""  # JSON Schema of the generated answer; empty for any text
    # Segments that an encoder reads apart, of whose states the decoder sees one for each token;
    # empty if the encoder reads the tokens at once.
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
    """The model's reply to one prompt; its scores are means over tokens."""

    text: str = ""  # generated text; empty if choices were scored
    score: float = 0.0  # mean log-probability of the generated tokens
    scores: tuple[float, ...] = ()  # mean log-probability of each choice's tokens
    output_tokens: int = 0


def batches(
    prompts: Iterable[ModelInput], budget: int, rows: int, new_tokens: int
) -> Iterator[list[ModelInput]]:
    """Yields all prompts, longest first, in batches whose padded size is within the budget.

    The size is rows x (longest prompt + most new tokens), in tokens, with a row for each beam or
    choice of a prompt. A prompt that exceeds the budget is a batch on its own. Prompts of equal
    length stay in their order.
    """
    # Separate batches, since the model either scores or generates for a complete batch.
    # Longest first, so that a lack of memory mostly shows in the first batch.
    ordered = sorted(prompts, key=lambda p: (not p.choices, -len(p.tokens)))
    for has_choices, group in groupby(ordered, key=lambda p: bool(p.choices)):
        step_cost = _STEP * (1 if has_choices else max(1, new_tokens))
        batch: list[ModelInput] = []
        count = most_new = padding = 0
        for prompt in group:
            prompt_rows, prompt_new = prompt.cost(rows, new_tokens)
            longest = len((batch or [prompt])[0].tokens)
            count, most_new = count + prompt_rows, max(most_new, prompt_new)
            padding += prompt_rows * (longest - len(prompt.tokens))
            # Padding that costs more than the steps of another batch costs more than that batch.
            if batch and (count * (longest + most_new) > budget or padding > step_cost):
                yield batch
                batch, count, most_new, padding = [], prompt_rows, prompt_new, 0
            batch.append(prompt)
        yield batch
