"""Models for fine-tuning, and a Trainer that weights micro-batches by their number of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import torch
import transformers
from transformers import PreTrainedModel, Trainer
from transformers.modeling_outputs import BaseModelOutput

from leporello.core.environment.extras import require
from leporello.core.training import Training
from leporello.readers.backends.pretrained import (
    Architecture,
    read_config,
    read_weights,
    refuse_incomplete,
)
from leporello.readers.backends.rows import IGNORED

_WITH_HEADS = ("AutoModelForQuestionAnswering", "AutoModelForSequenceClassification")


def load_network(
    model: str, architecture: Architecture, seed: int, labels: Sequence[str] = ()
) -> PreTrainedModel:
    """Returns a model in float32; a missing head, or one without these labels, is random."""
    config = read_config(model)
    if labels and not set(labels) <= set((config.id2label or {}).values()):
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: number for number, label in enumerate(labels)}
    # A missing head is random: without a seed, a second process would train another model.
    transformers.set_seed(seed)
    # float32, since Adam's small steps vanish in 16 bits; `precision` only sets the arithmetic.
    loaded, missing = read_weights(
        model, architecture, config=config, dtype=torch.float32, ignore_mismatched_sizes=True
    )
    if architecture in _WITH_HEADS:  # the head may be random, but not the body
        body = f"{loaded.base_model_prefix}."
        # Models for token spans lack a pooler by design.
        missing = [n for n in missing if n.startswith(body) and "pooler" not in n]
    refuse_incomplete(model, loaded, missing)
    return loaded


def with_lora(network: PreTrainedModel, settings: Training) -> Any:  # noqa: ANN401 -- peft's model
    """Returns the model with LoRA, so that only low-rank weights are trained; raises UserError."""
    require("lora_rank", "peft")
    import peft

    # A new head is random, so all of its weights must be trained.
    heads = [name for name in ("classifier", "qa_outputs", "score") if hasattr(network, name)]
    options: dict[str, Any] = {"modules_to_save": heads or None, "target_modules": "all-linear"}
    rank, scale = settings.lora_rank, settings.lora_alpha
    return peft.get_peft_model(network, peft.LoraConfig(r=rank, lora_alpha=scale, **options))


Tensors: TypeAlias = Mapping[str, torch.Tensor]
_ENCODER = ("input_ids", "attention_mask", "global_attention_mask")  # inputs of an encoder


class BatchTrainer(Trainer):
    """Trainer with a data set of micro-batches.

    The loss is the mean over all tokens, classes or spans of a batch, or of the validation data.
    transformers' Trainer does so only for the few models that take the number of items per batch;
    for others it adds the means of micro-batches, as if each were a batch.
    """

    loss_is_scaled_for_ga = True

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 -- as in Trainer
        super().__init__(**arguments)
        self.model_accepts_loss_kwargs = False  # all models return the mean over a micro-batch

    def compute_loss(
        self,
        model: Any,  # noqa: ANN401 -- as in Trainer
        inputs: Any,  # noqa: ANN401 -- as in Trainer
        return_outputs: bool = False,
        num_items_in_batch: Any = None,  # noqa: ANN401 -- as in Trainer
    ) -> Any:  # noqa: ANN401 -- as in Trainer
        """Returns the contribution of a micro-batch to the loss.

        In training the Trainer sums these over a batch's micro-batches; in validation it averages
        over all micro-batches.
        """
        batches, total = (1, num_items_in_batch) if model.training else self._validation_size
        if "places" in inputs:
            inputs = self._fused(model, inputs)
        # The Trainer adds means: of two micro-batches, loss and gradient were twice too large, and
        # the limit of the gradient's norm then cut it. So each mean is weighted (decision 26).
        share = _items(inputs) * batches / total
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        return (loss * share, outputs) if return_outputs else loss * share

    def _fused(self, model: Any, inputs: Tensors) -> dict[str, Any]:  # noqa: ANN401 -- as in Trainer
        """Returns the inputs with the states of each example's segments in a row."""
        network = self.accelerator.unwrap_model(model)
        remaining = dict(inputs)
        places, mask = remaining.pop("places"), remaining.pop("places_mask")
        encoder = {name: remaining.pop(name) for name in _ENCODER if name in remaining}
        with self.accelerator.autocast():
            states = network.get_encoder()(**encoder).last_hidden_state.flatten(0, 1)
        outputs = BaseModelOutput(last_hidden_state=states[places])
        return {**remaining, "encoder_outputs": outputs, "attention_mask": mask}

    def _get_num_items_in_batch(self, batch_samples: list[Any], device: torch.device) -> Any:  # noqa: ANN401 -- as in Trainer
        """Returns the number of items of a batch."""
        return torch.stack([*map(_items, batch_samples)]).sum().to(device)

    @cached_property
    def _validation_size(self) -> tuple[int, int]:
        """Number of micro-batches and of items in the validation data."""
        batches: Any = self.eval_dataset
        # Counted, since a small last micro-batch would otherwise weigh as much as a full one.
        return len(batches), sum(int(_items(self.data_collator([batch]))) for batch in batches)


def _items(inputs: Tensors) -> torch.Tensor:
    """Returns the number of tokens, classes or spans in the mean loss of a micro-batch."""
    if "labels" in inputs:
        return (inputs["labels"] != IGNORED).sum()
    return torch.ones_like(inputs["start_positions"]).sum()
