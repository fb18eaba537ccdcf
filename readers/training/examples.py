"""Training examples of a model, their micro-batches, and these as tensors."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from leporello.core.training import Training
from leporello.readers.backends.rows import IGNORED, decoder_places, encoder_rows, padded
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.encoders import segments

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# Sorting saves padding, groups keep the order nearly random; the Trainer's sampler sorts 50 too.
_SORTED = 50  # micro-batches whose examples are sorted by length together


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A training example."""

    prompt: ModelInput
    labels: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of tokens, counted as in fairseq: that of the longer side."""
        return max(len(self.prompt.tokens), len(self.labels))


def micro_batches(
    examples: Sequence[TrainingExample], settings: Training, *, shuffled: bool
) -> list[list[TrainingExample]]:
    """Returns training examples as a data set of the Trainer, with a micro-batch per item.

    So the Trainer samples, skips and divides complete micro-batches, which may differ in size. They
    are packed once, as in fairseq, and drawn in another order for each epoch.
    """
    if not shuffled:
        return [*_packed(examples, settings)]
    mixed = list(examples)
    random.Random(str(settings.seed)).shuffle(mixed)
    # With a budget, all examples are sorted and packed.
    rows = len(mixed) if settings.batch_tokens else _SORTED * _rows(settings)
    groups = (mixed[start : start + rows] for start in range(0, len(mixed), rows))
    ordered = (sorted(group, key=lambda example: -example.size) for group in groups)
    return [*_packed(chain.from_iterable(ordered), settings)]


def _rows(settings: Training) -> int:
    return settings.batch_size // settings.accumulate


def _packed(
    examples: Iterable[TrainingExample], settings: Training
) -> Iterator[list[TrainingExample]]:
    budget = settings.batch_tokens // settings.accumulate
    batch: list[TrainingExample] = []
    for example in examples:
        longest = max(member.size for member in (*batch, example))
        is_full = longest * (len(batch) + 1) > budget if budget else len(batch) == _rows(settings)
        # An example larger than the budget forms a micro-batch of its own.
        if batch and is_full:
            yield batch
            batch = []
        batch.append(example)
    if batch:
        yield batch


Tensors: TypeAlias = "dict[str, torch.Tensor]"
# Returns the tensors of a micro-batch for a network, padded by the given token.
Collator: TypeAlias = Callable[[Any, int, Sequence[TrainingExample]], Tensors]

_CPU = torch.device("cpu")  # the Trainer moves tensors to the device


def translations(
    network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]
) -> Tensors:
    """Returns the tensors for an encoder-decoder; `BatchTrainer` fuses the states of segments."""
    prompts = [example.prompt for example in examples]
    rows = [segment for prompt in prompts for segment in prompt.encoded]
    ids, mask = encoder_rows(rows, padding, _CPU)
    labels, counted = padded([example.labels for example in examples], IGNORED, _CPU)
    # By the mask for the same reason: a label may equal the padding value.
    labels = labels.masked_fill(counted == 0, IGNORED)
    tensors = {"input_ids": ids, "attention_mask": mask, "labels": labels}
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
    # By the mask, not by the id: many decoders pad with the end token, which must be learnt.
    labels = ids.masked_fill(mask == 0, IGNORED)
    for row, example in zip(labels, examples, strict=True):
        # The prompt gets no loss: it is given at test time, and is far longer than its answer.
        row[: len(example.prompt.tokens)] = IGNORED
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def classes(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a classifier."""
    prompts = [example.prompt for example in examples]
    tensors = segments.tensors(network, prompts, padding, _CPU)
    return {**tensors, "labels": torch.tensor([example.labels[0] for example in examples])}


def spans(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a model that predicts the start and end of an answer."""
    prompts = [example.prompt for example in examples]
    tensors = segments.tensors(network, prompts, padding, _CPU)
    positions = torch.tensor([example.labels for example in examples])
    return {**tensors, "start_positions": positions[:, 0], "end_positions": positions[:, 1]}
