"""Records of what workers begin at a shard, from which the next worker knows why one died.

A worker that dies leaves behind what it began last. If the driver that asked for it still lives,
that death counts against it. What has killed three times is done in its smallest parts, and a part
that kills alone fails. The file of a shard is removed when the shard is finished:

{"attempt": 2, "driver": "5f…", "deaths": [["window", 0, 7, 1]]}
["select", 0, 12]
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import UserError

TRIES = 3  # deaths after which something is done in its smallest parts, or fails if it is one
ALONE = 1  # deaths after which such a part fails: the whole has had its tries

# What is begun: its kind, the place of its pipeline in the batch, and numbers that name it.
Phase: TypeAlias = tuple[str | int, ...]


def deadline_of(attempts: Path) -> Path:
    """Returns the file of a shard's deadline, by the file of its attempts."""
    return attempts.with_suffix(".deadline")


@dataclass
class Attempts:
    """Records what one pipeline begins at a shard; without a file, nothing is recorded.

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
            kind: `open`, `select`, `enrich`, `combine`, `metric`, `window`, `read` or `load`.
            numbers: Numbers that name it within the task.
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
            UserError: That has killed its worker each time: no read is to blame.
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


@dataclass
class AttemptLog:
    """The file of the attempts at one shard.

    Attributes:
        path: Path of the file.
        driver: Token of the driver that asks for the shard.
        attempt: Number of this attempt, from 1.
        deaths: Deaths that count, by what was begun last.
        is_overdue: Whether a deadline ended the last attempt.
    """

    path: Path
    driver: str
    attempt: int = 1
    deaths: Counter[Phase] = field(default_factory=Counter)
    is_overdue: bool = False
    _file: int | None = None

    @property
    def deadline(self) -> Path:
        """File that a worker writes to when the time of a call is over."""
        return deadline_of(self.path)

    def open(self) -> None:
        """Counts the death of the last attempt, and begins another.

        Raises:
            OSError: The file cannot be written.
        """
        last, phase = self._load()
        if last and phase and last["driver"] == self.driver:
            self.is_overdue = self.deadline.exists() and self.deadline.stat().st_size > 0
            # A call that overran its deadline once would do so again: no further try.
            self.deaths[phase] += TRIES if self.is_overdue else 1
        self.deadline.unlink(missing_ok=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        deaths = [[*phase, count] for phase, count in self.deaths.items()]
        self._write({"attempt": self.attempt, "driver": self.driver, "deaths": deaths})

    def record(self, phase: Phase) -> None:
        """Writes down that something is begun."""
        self._write(phase)

    def close(self, *, finished: bool) -> None:
        """Closes the file; removes it once the shard is finished."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if finished:
            self.path.unlink(missing_ok=True)
            self.deadline.unlink(missing_ok=True)

    def _write(self, row: object) -> None:
        assert self._file is not None
        os.write(self._file, json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def _load(self) -> tuple[Mapping[str, Any] | None, Phase]:
        """Returns the last attempt, and what it began last."""
        last: Mapping[str, Any] | None = None
        phase: Phase = ()
        data = self.path.read_bytes() if self.path.exists() else b""
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # a kill cut the line: it was not begun
            os.truncate(self.path, len(data) - len(lines.pop()))
        for line in lines:
            with suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    last, phase = row, ()
                else:
                    phase = tuple(row)
        if last:
            self.attempt = last["attempt"] + 1
            self.deaths.update({tuple(key): count for *key, count in last["deaths"]})
        return last, phase
