"""What a model learns from: tokens in, tokens or classes out."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from leporello.core.training import Training
from leporello.readers.batching.micro_batches import ModelInput

_STRETCH = 50  # micro-batches over whose inputs lengths are sorted


@dataclass(frozen=True, slots=True)
class TrainingExample:
    """One thing to learn.

    Attributes:
        prompt: Input of the model.
        labels: Labels that should come of it: tokens, a class, or the positions of a span.
    """

    prompt: ModelInput
    labels: tuple[int, ...]

    @property
    def size(self) -> int:
        """Returns the tokens that it takes, as fairseq counts: the longer of its two sides."""
        return max(len(self.prompt.tokens), len(self.labels))


@dataclass
class MicroBatches:
    """Training examples as the Trainer's data set: each item is a micro-batch.

    So the Trainer's own sampler, its skipping when it resumes, and its division among devices
    work on whole micro-batches, however many inputs each holds. Under a budget of tokens they are
    made up once, as in fairseq, since their number must not change; otherwise anew each epoch.

    Attributes:
        examples: Training examples, all of them.
        settings: Settings that say how they are packed.
        shuffled: Whether they may stand in another order than given.
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
        """Makes up the micro-batches of an epoch; the Trainer's loader calls it."""
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
        drawn = list(self.examples)
        random.Random(f"{self.settings.seed} {self._epoch}").shuffle(drawn)
        if not self.settings.group_by_length:
            yield from drawn
            return
        rows = len(drawn) if self.settings.batch_tokens else _STRETCH * self._rows
        rest = iter(drawn)
        while stretch := list(islice(rest, rows)):
            yield from sorted(stretch, key=lambda example: -example.size)

    @property
    def _rows(self) -> int:
        return self.settings.batch_size // self.settings.accumulate

    def _packed(self, examples: Iterator[TrainingExample]) -> Iterator[list[TrainingExample]]:
        budget = self.settings.batch_tokens // self.settings.accumulate
        batch: list[TrainingExample] = []
        for example in examples:
            longest = max(one.size for one in (*batch, example))
            full = longest * (len(batch) + 1) > budget if budget else len(batch) == self._rows
            if batch and full:
                yield batch
                batch = []
            batch.append(example)
        if batch:
            yield batch
