"""Base of both classifiers of texts: their model and its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Read
from leporello.readers.backends.pretrained import DType
from leporello.readers.batching.token_budget import BatchTokens, TokenBudget
from leporello.readers.classical.saved_model import is_trained_here
from leporello.readers.encoders.batched_model import Segments
from leporello.readers.encoders.sequence_classification import SequenceClassification
from leporello.text.tokens import Words


@dataclass(frozen=True)
class TrainedClassifier:
    """Base of the classifiers with a scikit-learn model from `train`, or a transformers model.

    Attributes:
        model: Folder that `train` wrote, or path or hub id of a transformers model with
            safetensors. None before the training.
        max_input_tokens: Input window of a transformers model, including special tokens.
        batch_tokens: Maximum number of tokens per micro-batch, including padding; `auto` fills the
            GPU's memory, or is 4096 on a CPU.
        dtype: Type of the weights; `auto` is that of the checkpoint.
        device: Device as torch names it; `auto` is CUDA if available, otherwise the CPU.
        seed: Seed of the training.
    """

    _trainer: ClassVar[str]  # name of the function that fine-tunes it

    model: ModelSource | None = None
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"
    seed: Count = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text; of words, for a scikit-learn model."""
        if network := self._network:
            return network.tokens.count(texts)
        return [len(Words().offsets(text)) for text in texts]

    def prompts(self, read: Read) -> list[Segments]:
        """Returns a transformers model's input for each part of an input."""
        raise NotImplementedError

    @property
    def trainer(self) -> str:
        """Name of the function that fine-tunes a transformers model; see `FineTunes`."""
        name = f"leporello.readers.training.fine_tuning:{self._trainer}"
        return name if self._network else ""

    @property
    def network(self) -> SequenceClassification:
        """The transformers model, which is loaded on first use."""
        assert self._network
        return self._network

    @property
    def depends_on_batch(self) -> bool:
        """Whether the other inputs of a batch change scores: true for a transformers model."""
        # Padding changes the last digits of a network's scores; scikit-learn scores each text
        # alone.
        return self._network is not None

    @property
    def batching(self) -> TokenBudget | None:
        """Token budget of a transformers model's micro-batches, with their counts."""
        return self._network.batching if self._network else None

    @cached_property
    def _network(self) -> SequenceClassification | None:
        if self.model is None or is_trained_here(self.model):
            return None
        return SequenceClassification(
            self.model, self.max_input_tokens, self.batch_tokens, self.dtype, self.device
        )
