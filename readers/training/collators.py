"""Micro-batches as the tensors that a model is given, and the labels that it should come to."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from leporello.readers.backends.padding import padded
from leporello.readers.backends.scoring import IGNORED
from leporello.readers.encoders import batched_model
from leporello.readers.training.examples import TrainingExample

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Tensors: TypeAlias = "dict[str, torch.Tensor]"
# The Trainer hands over a list of one micro-batch.
Collator: TypeAlias = Callable[[list[list[TrainingExample]]], Tensors]

_HERE = torch.device("cpu")  # the Trainer moves them


def translations(network: PreTrainedModel, padding: int) -> Collator:
    """Returns what makes tensors for an encoder-decoder."""
    forward = inspect.signature(network.forward).parameters
    shifted = getattr(network, "prepare_decoder_input_ids_from_labels", None)

    def collate(micro_batches: list[list[TrainingExample]]) -> Tensors:
        [examples] = micro_batches
        ids, mask = padded([example.prompt.tokens for example in examples], padding, _HERE)
        tensors = {"input_ids": ids, "attention_mask": mask, "labels": _labels(examples)}
        if shifted:  # where labels are smoothed, the Trainer keeps them to itself
            tensors["decoder_input_ids"] = shifted(labels=tensors["labels"])
        if "global_attention_mask" in forward:  # LED, as when it reads
            tensors["global_attention_mask"] = torch.zeros_like(mask)
            tensors["global_attention_mask"][:, 0] = 1
        return tensors

    return collate


def continuations(_: PreTrainedModel, padding: int) -> Collator:
    """Returns what makes tensors for a decoder-only model, which learns the labels' tokens only."""

    def collate(micro_batches: list[list[TrainingExample]]) -> Tensors:
        [examples] = micro_batches
        rows = [(*example.prompt.tokens, *example.labels) for example in examples]
        ids, mask = padded(rows, padding, _HERE)
        labels = ids.masked_fill(mask == 0, IGNORED)
        for row, example in zip(labels, examples, strict=True):
            row[: len(example.prompt.tokens)] = IGNORED
        return {"input_ids": ids, "attention_mask": mask, "labels": labels}

    return collate


def classes(network: PreTrainedModel, padding: int) -> Collator:
    """Returns what makes tensors for a classifier."""

    def collate(micro_batches: list[list[TrainingExample]]) -> Tensors:
        [examples] = micro_batches
        prompts = [example.prompt for example in examples]
        tensors = batched_model.tensors(network, prompts, padding, _HERE)
        return {**tensors, "labels": torch.tensor([example.labels[0] for example in examples])}

    return collate


def spans(network: PreTrainedModel, padding: int) -> Collator:
    """Returns what makes tensors for a model that marks where an answer begins and ends."""

    def collate(micro_batches: list[list[TrainingExample]]) -> Tensors:
        [examples] = micro_batches
        prompts: Sequence[Any] = [example.prompt for example in examples]
        tensors = batched_model.tensors(network, prompts, padding, _HERE)
        positions = torch.tensor([example.labels for example in examples])
        return {**tensors, "start_positions": positions[:, 0], "end_positions": positions[:, 1]}

    return collate


def _labels(examples: Sequence[TrainingExample]) -> torch.Tensor:
    labels, mask = padded([example.labels for example in examples], IGNORED, _HERE)
    return labels.masked_fill(mask == 0, IGNORED)
