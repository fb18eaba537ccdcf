"""A run under way, seen from another process: its journals are read as they grow."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.directory import RunDirectory
from leporello.metrics import make_metrics

__all__ = ["Progressing", "Watch"]

_RECENT = 60.0  # seconds that the speed is measured over


@dataclass(frozen=True, slots=True)
class Progressing:
    """How far one pipeline on one task is.

    Attributes:
        pipeline: Its name.
        task: Its name.
        finished: Examples, failed ones included.
        expected: Examples that there are; None where the task does not know.
        failed: Examples that failed.
        per_second: Examples finished a second while they were watched; None if none was.
        scores: Of what is finished, by the name of each metric's headline.
    """

    pipeline: str
    task: str
    finished: int
    expected: int | None
    failed: int
    per_second: float | None
    scores: Mapping[str, float]

    @property
    def seconds_left(self) -> float | None:
        """What is left at the present speed; None if there is no telling."""
        if self.expected is None or not self.per_second:
            return None
        return (self.expected - self.finished) / self.per_second


class Watch:
    """Follows the journals of a run, reading only what they have gained."""

    def __init__(self, run: Path) -> None:
        """Reads nothing yet.

        Args:
            run: The run's directory.

        Raises:
            UserError: No run lies there.
        """
        self.directory = RunDirectory.of_run(run)
        self._tails: dict[tuple[str, str], _Tail] = {}

    @property
    def running(self) -> bool:
        """Whether a process of this machine is at it."""
        return self.directory.runs_here()

    def look(self) -> list[Progressing]:
        """Returns how far each pipeline on each task is by now."""
        return [self._look(*job, expected) for job, expected in self.directory.expected().items()]

    def _look(self, pipeline: str, task: str, expected: int | None) -> Progressing:
        path = self.directory.journal(pipeline, task)
        tail = self._tails.setdefault((pipeline, task), _Tail(path))
        tail.read_on()
        return Progressing(
            pipeline=pipeline,
            task=task,
            finished=len(tail.done),
            expected=expected,
            failed=len(tail.failed),
            per_second=tail.speed(),
            scores=tail.scores(),
        )


class _Tail:
    """One journal, of which whole lines are taken as they come."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[int, Mapping[str, Any]] = {}  # by example, its statistics by metric
        self.failed: set[int] = set()
        self._end = 0
        self._seen: list[tuple[float, int]] = []

    def read_on(self) -> None:
        for line in self._lines():
            row = json.loads(line)
            if "done" in row:
                self.done[row["done"]] = row["statistics"]
                self.failed.difference_update([row["done"]])
                self.failed.update([row["done"]] if "failure" in row else [])
            elif "retry" in row:
                for example in row["retry"]:
                    self.done.pop(example, None)
                    self.failed.discard(example)
        self._seen.append((time.monotonic(), len(self.done)))

    def _lines(self) -> Iterator[bytes]:
        """Yields whole lines not yet seen; from the first on, if the journal was begun anew."""
        if not self.path.exists():
            self._forget()
            return
        if self.path.stat().st_size < self._end:
            self._forget()
        with self.path.open("rb") as file:
            file.seek(self._end)
            for line in file:
                if not line.endswith(b"\n"):  # being written
                    return
                self._end += len(line)
                yield line

    def _forget(self) -> None:
        self.done.clear()
        self.failed.clear()
        self._end = 0

    def speed(self) -> float | None:
        """Returns examples a second over the last minute that was watched."""
        now, finished = self._seen[-1]
        self._seen = [(when, n) for when, n in self._seen if now - when <= _RECENT]
        since, before = self._seen[0]
        return (finished - before) / (now - since) if finished > before else None

    def scores(self) -> dict[str, float]:
        """Returns the headline of each metric over what is finished."""
        names = next((list(row) for row in self.done.values() if row), [])
        found = {}
        for name, metric in make_metrics(names).items():
            known = [s for row in self.done.values() if (s := row.get(name)) is not None]
            scores = metric.aggregate(known) if known else {}
            if metric.headline in scores:
                found[metric.headline] = scores[metric.headline]
        return found
