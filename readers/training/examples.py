"""Training examples of a model, and their micro-batches."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from leporello.core.training import Training
from leporello.readers.batching.micro_batches import ModelInput

# Sorting saves padding, groups keep the order nearly random; the Trainer's sampler sorts 50 too.
_SORTED = 50  # micro-batches whose examples are sorted by length together


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """A training example.

    Attributes:
        prompt: Input of the model.
        labels: Labels: tokens, a class, or the positions of a span.
    """

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

    Attributes:
        examples: All training examples.
        settings: Settings of the training, including those of micro-batches.
        shuffled: Whether the order of the examples may change.
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
        # Seeded by the epoch too, so a resumed training packs the same micro-batches without any
        # state.
        random.Random(f"{self.settings.seed} {self._epoch}").shuffle(shuffled)
        if not self.settings.group_by_length:
            yield from shuffled
            return
        # With a budget, micro-batches are packed once and then shuffled, so all examples are
        # sorted.
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
            # An example larger than the budget forms a micro-batch of its own instead of being
            # dropped.
            if batch and is_full:
                yield batch
                batch = []
            batch.append(example)
        if batch:
            yield batch
