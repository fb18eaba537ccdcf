"""Limits of a run, and the logs of attempts that name the operations of dead workers.

The last line of a log names the operation during which a worker died. The death counts unless the
driver has ended, too. After three deaths the items of an operation run one at a time, and an item
that kills its worker alone fails. The file is removed when its shard is finished:

{"attempt": 2, "driver": "5f…", "deaths": [["window", 0, 7, 1]]}
["select", 0, 12]
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps, loads  # by name: a stage may replace functions of modules
from os import write
from pathlib import Path
from typing import Any

from leporello.engine.failures import Phase, set_late


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of batches and shards, and the time that an example may take.

    Attributes:
        max_active: Hold at most this many examples of a shard in memory at once, with their
            documents.
        window: Read at most this many inputs in one batch, unless the reader prefers more.
        shard_examples: Split the task into shards, each for one worker: a shard ends with the
            document that reaches this many examples.
        shard_bytes: End a shard also with the document at which the task's rows in the shard reach
            this many bytes.
        example_timeout: Time limit for each call of a stage; beyond it, the example fails.
    """

    # With `ReadEach`, 128 examples fill 98 % of the places in batches of 32. All documents of a
    # group are open together, which raised peak memory from 114 to 209 MB (decision 49).
    max_active: int = 128
    window: int = 32
    shard_examples: int = 128
    shard_bytes: int = 32_000_000
    example_timeout: float | None = None


@dataclass
class AttemptLog:
    """File with the attempts to process one shard."""

    path: Path
    driver: str  # token of the driver that requests the shard
    # Function that raises an error if the driver cannot be reached any more.
    connected: Callable[[], None]
    attempt: int = 1  # number of this attempt, from 1
    # Number of deaths that count, by the operation that was started last.
    deaths: Counter[Phase] = field(default_factory=Counter)
    _file: int | None = None

    def open(self, blame: int = 1) -> None:
        """Counts the death of the last attempt as `blame` deaths, and starts a new one."""
        last, phase = self._load()
        # If the driver died too, the machine is the likely cause, so the operation is not blamed.
        if last and phase and last["driver"] == self.driver:
            self.deaths[phase] += blame
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        deaths = [[*phase, count] for phase, count in self.deaths.items()]
        self._write({"attempt": self.attempt, "driver": self.driver, "deaths": deaths})

    # One short write per operation, without a sync: the file must survive the process, not the
    # machine, whose failures count against no operation.
    def record(self, phase: Phase) -> None:
        """Writes that an operation is started."""
        # First: a stage that closes the connection ends this process during its own operation.
        self.connected()
        self._write(phase)

    def close(self, *, finished: bool) -> None:
        """Closes the file; removes it once the shard is finished."""
        set_late(None)  # the worker may wait for its next shard
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if finished:
            self.path.unlink(missing_ok=True)

    def _write(self, row: object) -> None:
        assert self._file is not None
        # Unbuffered and before the operation: after a crash, only written lines remain.
        write(self._file, dumps(row, separators=(",", ":")).encode() + b"\n")

    def _load(self) -> tuple[Mapping[str, Any] | None, Phase]:
        """Returns the last attempt, and the operation that it started last."""
        last: Mapping[str, Any] | None = None
        phase: Phase = ()
        data = self.path.read_bytes() if self.path.exists() else b""
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # a kill cut the line: not started
            os.truncate(self.path, len(data) - len(lines.pop()))
        for line in lines:
            with suppress(ValueError):
                row = loads(line)
                if isinstance(row, dict):
                    last, phase = row, ()
                else:
                    phase = tuple(row)
        if last:
            self.attempt = last["attempt"] + 1
            self.deaths.update({tuple(key): count for *key, count in last["deaths"]})
        return last, phase
