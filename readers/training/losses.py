"""The Trainer on micro-batches: each counts by what it holds, however many a batch is read in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import torch
from transformers import Trainer

from leporello.readers.backends.scoring import IGNORED

Tensors: TypeAlias = "Mapping[str, torch.Tensor]"


class BatchTrainer(Trainer):
    """The Trainer, with a data set of micro-batches.

    A loss is the mean over all tokens, classes or spans of a batch, or of what is validated on.
    Left to itself the Trainer takes that from the few models that know how many there are in a
    batch; of others it adds the means of micro-batches up, as if each were a batch.
    """

    loss_is_scaled_for_ga = True

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 -- the Trainer's
        """Begins as the Trainer does."""
        super().__init__(**arguments)
        self.model_accepts_loss_kwargs = False  # all models tell the mean over a micro-batch

    def compute_loss(
        self,
        model: Any,  # noqa: ANN401 -- the Trainer's
        inputs: Any,  # noqa: ANN401 -- the Trainer's
        return_outputs: bool = False,
        num_items_in_batch: Any = None,  # noqa: ANN401 -- the Trainer's
    ) -> Any:  # noqa: ANN401 -- the Trainer's
        """Returns what a micro-batch adds to the loss.

        Such parts are added up over a batch's micro-batches, and averaged over processes; where
        losses are measured only, they are averaged over all micro-batches.
        """
        if model.training:
            parts, whole = self.accelerator.num_processes, num_items_in_batch
        else:
            parts, whole = len(self._validation), self._validated
        share = _items(inputs) * parts / whole
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        return (loss * share, outputs) if return_outputs else loss * share

    def _get_num_items_in_batch(
        self,
        batch_samples: list[Any],
        device: torch.device,
    ) -> Any:  # noqa: ANN401 -- the Trainer's
        """Returns what a batch's micro-batches hold, in all processes."""
        held = torch.stack([*map(_items, batch_samples)]).sum()
        return self.accelerator.gather(held.to(device)).sum()

    @property
    def _validation(self) -> Sequence[Any]:
        batches: Any = self.eval_dataset
        return batches  # type: ignore[no-any-return]  # the Trainer's

    @cached_property
    def _validated(self) -> int:
        return sum(int(_items(self.data_collator([batch]))) for batch in self._validation)

    def _get_collator_with_removed_columns(
        self,
        collator: Any,  # noqa: ANN401 -- the Trainer's
        description: str | None = None,  # noqa: ARG002 -- the Trainer's
    ) -> Any:  # noqa: ANN401 -- the Trainer's
        return collator  # training examples have no columns


def _items(inputs: Tensors) -> torch.Tensor:
    """Returns how many tokens, classes or spans a micro-batch's loss is the mean of."""
    if "labels" in inputs:
        return (inputs["labels"] != IGNORED).sum()
    return torch.ones_like(inputs["start_positions"]).sum()
