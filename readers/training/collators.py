"""Collators: micro-batches as tensors of inputs and labels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from leporello.readers.backends.padding import decoder_places, encoder_rows, padded
from leporello.readers.backends.scoring import IGNORED
from leporello.readers.encoders import batched_model
from leporello.readers.training.examples import TrainingExample

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Tensors: TypeAlias = "dict[str, torch.Tensor]"
# Returns the tensors of a micro-batch for a network, padded by the given token.
Collator: TypeAlias = Callable[[Any, int, Sequence[TrainingExample]], Tensors]

_CPU = torch.device("cpu")  # the Trainer moves tensors to the device


def translations(
    network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]
) -> Tensors:
    """Returns the tensors for an encoder-decoder; `BatchTrainer` fuses the states of segments."""
    prompts = [example.prompt for example in examples]
    segments = [segment for prompt in prompts for segment in prompt.encoded]
    ids, mask = encoder_rows(segments, padding, _CPU)
    labels, counted = padded([example.labels for example in examples], IGNORED, _CPU)
    # By the mask for the same reason: a label may equal the padding value.
    labels = labels.masked_fill(counted == 0, IGNORED)
    tensors = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    # With label smoothing, the Trainer removes the labels from the model's inputs.
    if shifted := getattr(network, "prepare_decoder_input_ids_from_labels", None):
        tensors["decoder_input_ids"] = shifted(labels=labels)
    if "global_attention_mask" in inspect.signature(network.forward).parameters:
        # LED attends globally as in `backends.transformers_seq2seq`.
        tensors["global_attention_mask"] = torch.zeros_like(mask)
        tensors["global_attention_mask"][:, 0] = 1
    if any(prompt.segments for prompt in prompts):
        starts = range(0, ids.numel(), ids.shape[1])
        tensors["places"], tensors["places_mask"] = decoder_places(prompts, starts, _CPU)
    return tensors


def continuations(_: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a decoder-only model, which learns only the tokens of the labels."""
    rows = [(*example.prompt.tokens, *example.labels) for example in examples]
    ids, mask = padded(rows, padding, _CPU)
    # Padding by its mask, not by its id: many decoders pad with the end token, which must be
    # learnt.
    labels = ids.masked_fill(mask == 0, IGNORED)
    for row, example in zip(labels, examples, strict=True):
        # The prompt gets no loss: it is given at test time, and is far longer than its answer.
        row[: len(example.prompt.tokens)] = IGNORED
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def classes(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a classifier."""
    prompts = [example.prompt for example in examples]
    tensors = batched_model.tensors(network, prompts, padding, _CPU)
    return {**tensors, "labels": torch.tensor([example.labels[0] for example in examples])}


def spans(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a model that predicts the start and end of an answer."""
    prompts = [example.prompt for example in examples]
    tensors = batched_model.tensors(network, prompts, padding, _CPU)
    positions = torch.tensor([example.labels for example in examples])
    return {**tensors, "start_positions": positions[:, 0], "end_positions": positions[:, 1]}
