"""Inputs of classifiers, and inputs and answers of models that mark spans."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello.readers.backends.rows import padded
from leporello.readers.batching.micro_batches import Generation, ModelInput

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class Segments(ModelInput):
    """Tokens of one or two texts."""

    types: tuple[int, ...] = ()  # number of the text of each token
    # Number of leading tokens that attend globally in Longformer; classifiers use the first token.
    seeing_all: int = 1


def tensors(
    network: PreTrainedModel, batch: Sequence[ModelInput], padding: int, device: torch.device
) -> dict[str, torch.Tensor]:
    """Returns a model's inputs for `Segments`, each of shape (prompts, longest)."""
    import torch

    ids, mask = padded([prompt.tokens for prompt in batch], padding, device)
    inputs = {"input_ids": ids, "attention_mask": mask}
    prompts = [prompt for prompt in batch if isinstance(prompt, Segments)]
    if _uses_token_types(network):
        inputs["token_type_ids"] = padded([prompt.types for prompt in prompts], 0, device)[0]
    if network.config.model_type == "longformer":
        ends = torch.tensor([prompt.seeing_all for prompt in prompts], device=device)
        positions = torch.arange(ids.shape[1], device=device)
        inputs["global_attention_mask"] = (positions < ends[:, None]).long()
    return inputs


def _uses_token_types(network: PreTrainedModel) -> bool:
    """Returns whether a model uses token types; some tokenizers return them for models without."""
    parameters = inspect.signature(network.forward).parameters
    return "token_type_ids" in parameters and getattr(network.config, "type_vocab_size", 2) > 1


@dataclass(frozen=True, slots=True)
class QuestionPrompt(Segments):
    """Tokens of a question, which attends globally, and of a segment of a passage."""

    marks: tuple[bool, ...] = ()  # whether an answer may begin or end with each token
    null: int = 0  # position of the token whose logits predict "no answer"


@dataclass(frozen=True, slots=True)
class SpanReply(Generation):
    """Best span of a segment; the score is the sum of the logits of its start and end."""

    first: int = 0
    last: int = 0
    null: float = 0.0


@dataclass(frozen=True, slots=True)
class PassageWindow:
    """A segment of a passage, which the model reads with the question."""

    passage: int  # index of the passage
    prompt: QuestionPrompt
    text: str  # text of the complete passage
    # Offsets of the prompt's tokens, in characters of the passage for its tokens.
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

    The logits of first and last tokens, and whether an answer may begin or end at a token, have the
    shape (rows, tokens). A span has at most `longest` tokens. The earliest start wins among equal
    pairs, then the shortest pair. The result is the sums, -inf if no pair is allowed; the first
    tokens; the last tokens; each of shape (rows,).
    """
    import torch

    # Question and special tokens have high logits too, but are not part of the source.
    starts = starts.masked_fill(~allowed, -torch.inf)
    ends = ends.masked_fill(~allowed, -torch.inf)
    sums = starts[:, :, None] + ends[:, None, :]  # shape (rows, first token, last token)
    is_span = torch.ones_like(sums[0], dtype=torch.bool).triu().tril(longest - 1)
    # argmax, unlike max, is documented to return the first maximum.
    best = sums.masked_fill_(~is_span, -torch.inf).flatten(1).argmax(1)
    first, last = best // starts.shape[1], best % starts.shape[1]
    row = torch.arange(len(best), device=best.device)
    return sums[row, first, last], first, last
