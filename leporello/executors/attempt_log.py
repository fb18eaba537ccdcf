"""The file in which is written what is begun at a shard, and what deaths it is blamed for.

{"attempt": 2, "driver": "5f…", "host": "node-3", "worker": "…", "blamed": ["window", 0, 7]}
["select", 0, 12]
"""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.engine.attempts import TRIES, Phase
from leporello.storage.runs import RemoteRun


def deadline_of(attempts: Path) -> Path:
    """Returns the file of a shard's deadline, by that of its attempts."""
    return attempts.with_suffix(".deadline")


@dataclass
class AttemptLog:
    """The attempts at one shard.

    Attributes:
        path: Path of the file; beside it stands what a deadline left, if one was enforced.
        driver: Token of the driver that asks.
        is_there: Function that says whether a machine is still there, by its name; deaths with one
            that is gone count for nothing.
        host: Name of this machine.
        remote: The run at a URL, where the file lies too; None if it is at none.
        attempt: Number of this attempt, from 1.
        deaths: Deaths that count, by what was begun last.
        is_overdue: Whether the last attempt was ended by a deadline.
    """

    path: Path
    driver: str
    is_there: Callable[[str], bool] = lambda _: True
    host: str = field(default_factory=platform.node)
    remote: RemoteRun | None = None
    attempt: int = 1
    deaths: Counter[Phase] = field(default_factory=Counter)
    is_overdue: bool = False
    _file: int | None = None

    @property
    def deadline(self) -> Path:
        """File into which is written what a process was at when its time was over."""
        return deadline_of(self.path)

    def open(self) -> None:
        """Takes what earlier attempts left, and begins another.

        Raises:
            OSError: It cannot be written.
        """
        if self.remote:  # what another machine has begun
            self.remote.get(self._name)
        last, phase = self._load()
        if last and phase and last["driver"] == self.driver and self.is_there(last["host"]):
            self.is_overdue = self.deadline.exists() and self.deadline.stat().st_size > 0
            # What overran its deadline once would do so again: no further try.
            self.deaths[phase] += TRIES if self.is_overdue else 1
        self.deadline.unlink(missing_ok=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        deaths = [[*phase, count] for phase, count in self.deaths.items()]
        self._write(
            {"attempt": self.attempt, "driver": self.driver, "host": self.host, "deaths": deaths}
        )
        if self.remote:
            self.remote.put(self._name)

    def record(self, phase: Phase) -> None:
        """Writes down that something is begun."""
        self._write([*phase])
        # A machine that leaves takes its disk with it; the first attempt is not worth a request.
        if self.remote and self.attempt > 1:
            self.remote.put(self._name)

    @property
    def _name(self) -> str:
        assert self.remote is not None
        return self.path.relative_to(self.remote.directory).as_posix()

    def close(self, *, finished: bool) -> None:
        """Closes the file; once the shard is finished, it is removed."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if finished:
            self.path.unlink(missing_ok=True)
            self.deadline.unlink(missing_ok=True)
            if self.remote:
                self.remote.put(self._name)  # which removes it there

    def _write(self, row: Any) -> None:  # noqa: ANN401 -- JSON
        assert self._file is not None
        os.write(self._file, json.dumps(row, separators=(",", ":")).encode() + b"\n")

    def _load(self) -> tuple[Mapping[str, Any] | None, Phase]:
        """Returns the last attempt, and what it began last."""
        last: Mapping[str, Any] | None = None
        phase: Phase = ()
        data = self.path.read_bytes() if self.path.exists() else b""
        lines = data.splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):  # torn by a kill: it was not begun
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
