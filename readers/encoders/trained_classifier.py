"""The parts that both classifiers of texts share: which model they have, and its tokens."""

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
    """Base of the classifiers with a model of scikit-learn's that `train` wrote, or transformers'.

    Attributes:
        model: A folder that `train` made, or path or hub id of a transformers model with
            safetensors. None until it is trained.
        max_input_tokens: Tokens of a transformers model's window, special tokens included.
        batch_tokens: Tokens of a micro-batch, padding included; `auto` is as many as the GPU's
            memory holds, and 4096 on a CPU.
        dtype: Type of the weights; `auto` is the checkpoint's own.
        device: Device as torch names it; `auto` is CUDA where there is any, else the CPU.
        seed: Seed of the training.
    """

    _trainer: ClassVar[str]  # name of what fine-tunes it

    model: ModelSource | None = None
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"
    seed: Count = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the model's tokens of each text; words, if it is scikit-learn's."""
        if network := self._network:
            return network.tokens.count(texts)
        return [len(Words().offsets(text)) for text in texts]

    def prompts(self, read: Read) -> list[Segments]:
        """Returns what a transformers model is given for each part of an input."""
        raise NotImplementedError

    @property
    def trainer(self) -> str:
        """What fine-tunes a transformers model; see `FineTunes`."""
        name = f"leporello.readers.training.fine_tuning:{self._trainer}"
        return name if self._network else ""

    @property
    def network(self) -> SequenceClassification:
        """The transformers model, not loaded yet."""
        assert self._network
        return self._network

    @property
    def depends_on_batch(self) -> bool:
        """Whether batch mates change an answer's last digits: those of a transformers model."""
        return self._network is not None

    @property
    def batching(self) -> TokenBudget | None:
        """What a transformers model's micro-batches may take, and what came of them."""
        return self._network.batching if self._network else None

    @cached_property
    def _network(self) -> SequenceClassification | None:
        if self.model is None or is_trained_here(self.model):
            return None
        return SequenceClassification(
            self.model, self.max_input_tokens, self.batch_tokens, self.dtype, self.device
        )
