"""Log of the operations that workers start on a shard; it shows which operation crashed a worker.

The last line of the log names the operation during which a worker died. The death counts unless
the driver has ended, too. After three deaths the items of an operation run one at a time, and an
item that kills its worker alone fails. The file is removed when its shard is finished:

{"attempt": 2, "driver": "5f…", "deaths": [["window", 0, 7, 1]]}
["select", 0, 12]
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from json import dumps, loads  # by name: a stage may replace functions of modules
from os import write
from pathlib import Path
from typing import Any

from leporello.engine.failures import TRIES, Phase
from leporello.engine.limits import deadline_of


@dataclass
class AttemptLog:
    """File with the attempts to process one shard.

    Attributes:
        path: Path of the file.
        driver: Token of the driver that requests the shard.
        connected: Function that raises an error if the driver cannot be reached any more.
        attempt: Number of this attempt, from 1.
        deaths: Number of deaths that count, by the operation that was started last.
        is_overdue: Whether the last attempt exceeded a deadline.
    """

    path: Path
    driver: str
    connected: Callable[[], None]
    attempt: int = 1
    deaths: Counter[Phase] = field(default_factory=Counter)
    is_overdue: bool = False
    _file: int | None = None

    @property
    def deadline(self) -> Path:
        """File that a worker writes to when a call exceeds its deadline."""
        return deadline_of(self.path)

    def open(self) -> None:
        """Counts the death of the last attempt, and starts a new one.

        Raises:
            OSError: The file cannot be written.
        """
        last, phase = self._load()
        # If the driver died too, the machine is the likely cause, so the operation is not blamed.
        if last and phase and last["driver"] == self.driver:
            self.is_overdue = self.deadline.exists() and self.deadline.stat().st_size > 0
            # A call that exceeded its deadline would do so again, so it is not retried.
            self.deaths[phase] += TRIES if self.is_overdue else 1
        self.deadline.unlink(missing_ok=True)
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
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if finished:
            self.path.unlink(missing_ok=True)
            self.deadline.unlink(missing_ok=True)

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
