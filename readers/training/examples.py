"""Training examples of a model, their micro-batches, and these as tensors."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from leporello.core.training import Training
from leporello.readers.backends.rows import IGNORED, decoder_places, encoder_rows, padded
from leporello.readers.batching.micro_batches import ModelInput
from leporello.readers.encoders import batched_model

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


@dataclass
class MicroBatches:
    """Training examples as a data set of the Trainer, with a micro-batch per item.

    So the Trainer samples, skips and divides complete micro-batches, which may differ in size.
    With a budget of tokens, micro-batches are packed once, as in fairseq, since their number must
    not change; otherwise they are packed again for each epoch.
    """

    examples: Sequence[TrainingExample]
    settings: Training
    shuffled: bool = True
    _epoch: int = 0
    _batches: list[list[TrainingExample]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._current)

    def __getitem__(self, index: int) -> list[TrainingExample]:
        return self._current[index]

    def set_epoch(self, epoch: int) -> None:
        """Discards the micro-batches of the last epoch; the Trainer's loader calls it."""
        if epoch != self._epoch and self.shuffled and not self.settings.batch_tokens:
            self._epoch, self._batches = epoch, []

    @property
    def _current(self) -> list[list[TrainingExample]]:
        if not self._batches:
            self._batches = list(self._packed(self._ordered()))
        return self._batches

    def _ordered(self) -> Iterator[TrainingExample]:
        if not self.shuffled:
            yield from self.examples
            return
        shuffled = list(self.examples)
        # Seeded by the epoch too, so a resumed training packs the same micro-batches.
        random.Random(f"{self.settings.seed} {self._epoch}").shuffle(shuffled)
        if not self.settings.group_by_length:
            yield from shuffled
            return
        # With a budget, all examples are sorted and packed, then the micro-batches shuffled.
        rows = len(shuffled) if self.settings.batch_tokens else _SORTED * self._rows
        remaining = iter(shuffled)
        while group := list(islice(remaining, rows)):
            yield from sorted(group, key=lambda example: -example.size)

    @property
    def _rows(self) -> int:
        return self.settings.batch_size // self.settings.accumulate

    def _packed(self, examples: Iterator[TrainingExample]) -> Iterator[list[TrainingExample]]:
        budget = self.settings.batch_tokens // self.settings.accumulate
        batch: list[TrainingExample] = []
        for example in examples:
            longest = max(member.size for member in (*batch, example))
            is_full = longest * (len(batch) + 1) > budget if budget else len(batch) == self._rows
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
    segments = [segment for prompt in prompts for segment in prompt.encoded]
    ids, mask = encoder_rows(segments, padding, _CPU)
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
    tensors = batched_model.tensors(network, prompts, padding, _CPU)
    return {**tensors, "labels": torch.tensor([example.labels[0] for example in examples])}


def spans(network: PreTrainedModel, padding: int, examples: Sequence[TrainingExample]) -> Tensors:
    """Returns the tensors for a model that predicts the start and end of an answer."""
    prompts = [example.prompt for example in examples]
    tensors = batched_model.tensors(network, prompts, padding, _CPU)
    positions = torch.tensor([example.labels for example in examples])
    return {**tensors, "start_positions": positions[:, 0], "end_positions": positions[:, 1]}
