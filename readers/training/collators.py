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
# Makes tensors of a micro-batch for a network, given the token that fills up rows.
Collator: TypeAlias = Callable[[Any, int, Sequence[TrainingExample]], Tensors]

_HERE = torch.device("cpu")  # the Trainer moves them


def translations(
    network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]
) -> Tensors:
    """Returns the tensors for an encoder-decoder."""
    ids, mask = padded([example.prompt.tokens for example in examples], padding, _HERE)
    labels, counted = padded([example.labels for example in examples], IGNORED, _HERE)
    labels = labels.masked_fill(counted == 0, IGNORED)
    tensors = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    # Where labels are smoothed, the Trainer keeps them to itself.
    if shifted := getattr(network, "prepare_decoder_input_ids_from_labels", None):
        tensors["decoder_input_ids"] = shifted(labels=labels)
    if "global_attention_mask" in inspect.signature(network.forward).parameters:
        # LED, as when it reads.
        tensors["global_attention_mask"] = torch.zeros_like(mask)
        tensors["global_attention_mask"][:, 0] = 1
    return tensors


def continuations(_: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a decoder-only model, which learns the labels' tokens only."""
    rows = [(*example.prompt.tokens, *example.labels) for example in examples]
    ids, mask = padded(rows, padding, _HERE)
    labels = ids.masked_fill(mask == 0, IGNORED)
    for row, example in zip(labels, examples, strict=True):
        row[: len(example.prompt.tokens)] = IGNORED
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def classes(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a classifier."""
    prompts = [example.prompt for example in examples]
    tensors = batched_model.tensors(network, prompts, padding, _HERE)
    return {**tensors, "labels": torch.tensor([example.labels[0] for example in examples])}


def spans(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a model that marks where an answer begins and ends."""
    prompts = [example.prompt for example in examples]
    tensors = batched_model.tensors(network, prompts, padding, _HERE)
    positions = torch.tensor([example.labels for example in examples])
    return {**tensors, "start_positions": positions[:, 0], "end_positions": positions[:, 1]}
