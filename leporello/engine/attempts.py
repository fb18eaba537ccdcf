"""What is begun at a shard, written down before it is done: what a worker died over is known.

A worker that dies takes nothing with it but what it was at. When the next one begins the shard,
what was begun last is blamed, if the death counts: the driver that asked for it still lives, and so
does the machine. What is blamed three times is done in its smallest pieces, and a piece that kills
alone fails. Attempts end with the shard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from leporello.core.errors import UserError

TRIES = 3  # deaths after which something is done in its smallest pieces, or fails if it is one
ALONE = 1  # deaths after which such a piece fails: what it is a piece of has had its tries

# What is begun: its kind, the place of its pipeline in the batch, and numbers that name it.
Phase: TypeAlias = tuple[str | int, ...]


@dataclass
class Attempts:
    """What one pipeline begins at a shard; as it stands, nothing is kept of it.

    Attributes:
        pipeline: Place of the pipeline in its batch.
        deaths: Deaths that count, by what was begun last.
        record: Function that writes down what is begun.
        cause: Reason that something which fails for it is given.
    """

    pipeline: int = 0
    deaths: Counter[Phase] = field(default_factory=Counter)
    record: Callable[[Phase], None] | None = None
    cause: str = "its worker died over it each time"
    _last: tuple[str, tuple[int, ...]] | None = None

    def begin(self, kind: str, *numbers: int) -> int:
        """Writes down that something is begun, and returns how many deaths it has caused.

        Args:
            kind: `open`, `select`, `combine`, `metric`, `window`, `read` or `load`.
            numbers: Numbers that name it within the shard.
        """
        phase: Phase = (kind, self.pipeline, *numbers)
        self._last = kind, numbers
        if self.record is not None:
            self.record(phase)
        return self.deaths[phase] if self.deaths else 0

    @contextmanager
    def loading(self) -> Generator[None]:
        """Writes down that a model is loaded on the way, and then what goes on.

        Raises:
            UserError: That has killed its worker each time: it is no fault of what is read.
        """
        last = self._last
        if self.begin("load") >= TRIES:
            raise UserError(
                f"workers have died {TRIES} times while they loaded the model: is there memory for"
                " it? Their words stand above"
            )
        yield
        if last is not None:
            self.begin(last[0], *last[1])
