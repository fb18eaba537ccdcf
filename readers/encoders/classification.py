"""Base of the classifiers of texts and of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from leporello.core.errors import UserError
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.core.records import Read
from leporello.readers.backends.pretrained import TRAINER, DType, read_config
from leporello.readers.batching.batched_model import BatchedModel
from leporello.readers.batching.micro_batches import Generation, ModelInput
from leporello.readers.batching.token_budget import BatchTokens, TokenBudget
from leporello.readers.classical.saved_model import is_trained_here
from leporello.readers.encoders.segments import Segments, tensors
from leporello.readers.prompting.template import encodable
from leporello.text.tokens import Words

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class TrainedClassifier(BatchedModel):
    """Base of the classifiers with a scikit-learn model from `train`, or a transformers model.

    Attributes:
        model: Folder that `train` wrote, or path or hub id of a transformers model with
            safetensors. None before the training.
        max_input_tokens: Input window of a transformers model, including special tokens.
        seed: Seed of the training.
    """

    _architecture = "AutoModelForSequenceClassification"

    model: ModelSource | None = None
    max_input_tokens: Positive = 512
    batch_tokens: BatchTokens = 8192
    dtype: DType = "float32"
    device: str = "auto"
    seed: Count = 0

    @cached_property
    def is_network(self) -> bool:
        """Whether the model is a transformers model."""
        return self.model is not None and not is_trained_here(self.model)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text; of words, for a scikit-learn model."""
        if self.is_network:
            return super().count(texts)
        return [len(Words().offsets(text)) for text in texts]

    def prompts(self, read: Read) -> list[Segments]:
        """Returns a transformers model's input for each part of an input."""
        raise NotImplementedError

    @property
    def trainer(self) -> str:
        """Name of the function that fine-tunes a transformers model; see `FineTunes`."""
        return TRAINER if self.is_network else ""

    @property
    def depends_on_batch(self) -> bool:
        """Whether the other inputs of a batch change scores: true for a transformers model."""
        # Padding and the batch's shape change the last digits of a network (decision 10).
        return self.is_network

    @property
    def batching(self) -> TokenBudget | None:
        """Token budget of a transformers model's micro-batches, with their counts."""
        return self._batches if self.is_network else None

    @property
    def declared_labels(self) -> tuple[str, ...]:
        """Labels in the configuration; before a training, the model may lack a head for them."""
        assert self.model
        names = read_config(self.model).id2label or {}
        return tuple(str(name) for _, name in sorted(names.items(), key=lambda pair: int(pair[0])))

    def _encoded(self, *texts: str) -> Segments:
        """Returns the tokens of one or two texts, with special tokens."""
        return self._segments(self._tokenized(*texts))

    def _tokenized(self, *texts: str, **options: Any) -> Any:  # noqa: ANN401 -- of tokenizers
        options |= {"return_token_type_ids": True, "split_special_tokens": True}
        return self.tokens.tokenizer(*map(encodable, texts), verbose=False, **options)

    def _segments(self, encoded: Any) -> Segments:  # noqa: ANN401 -- as above
        return Segments(tuple(encoded["input_ids"]), types=tuple(encoded["token_type_ids"]))

    def _largest(self) -> ModelInput:
        ids = (self.tokens.padding,) * self.max_input_tokens
        return Segments(ids, types=(0,) * len(ids))

    def _answer(self, batch: Sequence[ModelInput]) -> list[Generation]:
        import torch

        network = self._network
        inputs = tensors(network, batch, self.tokens.padding, network.device)
        with torch.inference_mode():
            # In half precision, many probabilities near 1 would be equal.
            logits = network(**inputs).logits.float()
        return [Generation(scores=tuple(row)) for row in logits.softmax(-1).tolist()]

    @cached_property
    def _network(self) -> PreTrainedModel:
        loaded = super()._network
        if getattr(loaded.config, "problem_type", None) == "regression":
            raise UserError(f"model {self.model!r} predicts numbers, not classes; choose another")
        return loaded
