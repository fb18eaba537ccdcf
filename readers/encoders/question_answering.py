"""Transformers models that predict the start and end of an answer: BERT, RoBERTa and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello.readers.batching.micro_batches import Generation
from leporello.readers.encoders.batched_model import Segments

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class QuestionPrompt(Segments):
    """Tokens of a question, which attends globally, and of a segment of a passage.

    Attributes:
        marks: Whether an answer may begin or end with each token.
        null: Position of the token whose logits predict "no answer".
    """

    marks: tuple[bool, ...] = ()
    null: int = 0


@dataclass(frozen=True, slots=True)
class SpanReply(Generation):
    """Best span of a segment; the score is the sum of the logits of its start and end."""

    first: int = 0
    last: int = 0
    null: float = 0.0


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """A segment of a passage, which the model reads with the question.

    Attributes:
        prompt: Prompt of the model.
        text: Text of the complete passage.
        offsets: Offsets of the prompt's tokens, in characters of the passage for its tokens.
    """

    prompt: QuestionPrompt
    text: str
    offsets: Sequence[tuple[int, int]]

    def part(self) -> str:
        """Returns the text of the segment."""
        marked = [index for index, mark in enumerate(self.prompt.marks) if mark]
        start, end = self.characters(marked[0], marked[-1])
        return self.text[start:end]

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """Returns the start and end of tokens in the passage, without white space around them."""
        start, end = self.offsets[first][0], self.offsets[last][1]
        text = self.text[start:end]
        return end - len(text.lstrip()), start + len(text.rstrip())


def best_spans(
    starts: torch.Tensor, ends: torch.Tensor, allowed: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Returns the best start and end of each row, by the sum of their logits.

    The earliest start wins among equal pairs, then the shortest pair.

    Args:
        starts: Logits of the first token, shape (rows, tokens).
        ends: Logits of the last token, shape (rows, tokens).
        allowed: Whether an answer may begin or end at a token, shape (rows, tokens).
        longest: Maximum number of tokens from the start to the end, including both.

    Returns:
        The sums, -inf if no pair is allowed; the first tokens; the last tokens. Each has the shape
        (rows,).
    """
    import torch

    longest = min(longest, starts.shape[1])
    # Question and special tokens have high logits too, but are not part of the source.
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    # View of the ends that are possible for each start, shape (rows, tokens, longest).
    reached = torch.nn.functional.pad(ends, (0, longest - 1), value=-torch.inf).unfold(
        1, longest, 1
    )
    further = reached.argmax(-1)  # argmax, unlike max, is documented to return the first maximum
    sums = starts + reached.gather(-1, further[..., None]).squeeze(-1)
    first = sums.argmax(-1, keepdim=True)
    last = first + further.gather(-1, first)
    return sums.gather(-1, first).squeeze(-1), first.squeeze(-1), last.squeeze(-1)
