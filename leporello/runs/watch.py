"""Follows a run from another process: reads the stores of its shards as they change."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.core.files import read_rows
from leporello.engine.database import StoreCounts, counts_in, finished_in
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.signature import metrics_of_run
from leporello.metrics.statistics import StatisticsTable

_RECENT = 60.0  # seconds that the speed is measured over


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far one pipeline on one task is.

    Attributes:
        pipeline: Name of the pipeline.
        task: Name of the task.
        finished: Number of examples finished, failed ones included.
        expected: Number of examples that there are; None where the task does not know.
        failed: Number of examples that failed.
        shards: Number of shards that are finished.
        under_way: Number of shards that are begun and not finished.
        died: Number of times that a worker died over a shard.
        per_second: Examples finished a second while they were watched; None if none was.
        scores: Scores of finished shards, by the name of each metric's headline.
    """

    pipeline: str
    task: str
    finished: int
    expected: int | None
    failed: int
    shards: int
    under_way: int
    died: int
    per_second: float | None
    scores: dict[str, float]

    @property
    def seconds_left(self) -> float | None:
        """Seconds that the rest takes at the present speed; None if there is no telling."""
        if self.expected is None or not self.per_second:
            return None
        return (self.expected - self.finished) / self.per_second


class Watch:
    """Follows the shards of a run, reading each finished store once."""

    def __init__(self, run: Path) -> None:
        """Reads nothing yet.

        Args:
            run: The run's directory.

        Raises:
            UserError: No run lies there.
        """
        self.directory = RunDirectory.of_run(run)
        self.directory.check_stores()
        self._followed: dict[tuple[str, str], _FollowedJob] = {}

    @property
    def running(self) -> bool:
        """Whether a process of this machine is at it."""
        return self.directory.runs_here()

    def look(self) -> list[JobProgress]:
        """Returns how far each pipeline on each task is by now."""
        rows = read_rows(self.directory.workers) if self.directory.workers.exists() else ()
        died = Counter(
            (name, row["task"])
            for row in rows
            for name in row["pipelines"]
            if row["outcome"] == "died"
        )
        jobs = self.directory.expected().items()
        return [self._progress(*job, expected, died[job]) for job, expected in jobs]

    def _progress(self, pipeline: str, task: str, expected: int | None, died: int) -> JobProgress:
        files = JobFiles(self.directory, pipeline, task)
        followed = self._followed.setdefault(
            (pipeline, task), _FollowedJob(files, self.directory.jobs()[pipeline, task])
        )
        followed.read_on()
        return JobProgress(
            pipeline=pipeline,
            task=task,
            finished=followed.seen[-1][1],
            expected=expected,
            failed=sum(counts.failures for counts in followed.counts.values()),
            shards=followed.shards,
            under_way=len(followed.counts) - followed.shards,
            died=died,
            per_second=followed.speed(),
            scores=followed.scores(),
        )


@dataclass
class _FollowedJob:
    """The stores of one job, as far as they have been read."""

    files: JobFiles
    signature: Mapping[str, Any]
    counts: dict[int, StoreCounts] = field(default_factory=dict)
    statistics: dict[str, StatisticsTable] = field(default_factory=dict)
    seen: list[tuple[float, int]] = field(default_factory=list)
    _finished: dict[int, int] = field(default_factory=dict)  # times of stores, by shard

    @property
    def shards(self) -> int:
        """Number of shards that are finished."""
        return len(self._finished)

    def read_on(self) -> None:
        """Reads the stores that have changed since; finished ones add their statistics."""
        for shard in self.files.stored_shards():
            changed = self.files.store(shard).stat().st_mtime_ns
            if self._finished.get(shard) != changed:
                self._read(shard, changed)
        self.seen.append((time.monotonic(), sum(one.examples for one in self.counts.values())))

    def _read(self, shard: int, changed: int) -> None:
        if self._finished.pop(shard, None):  # its failed examples are tried again
            self._finished.clear()
            self.statistics.clear()
        counts = self.counts[shard] = counts_in(self.files.store(shard))
        if counts.examples < counts.key.examples or not counts.examples:
            return
        self._finished[shard] = changed
        for row in finished_in(self.files.store(shard)):
            for name, value in json.loads(row.statistics)["statistics"].items():
                if value is not None:
                    self.statistics.setdefault(name, StatisticsTable()).append(value)

    def speed(self) -> float | None:
        """Returns examples a second over the last minute that was watched."""
        now, finished = self.seen[-1]
        self.seen = [(when, n) for when, n in self.seen if now - when <= _RECENT]
        since, before = self.seen[0]
        return (finished - before) / (now - since) if finished > before else None

    def scores(self) -> dict[str, float]:
        """Returns the headline of each metric over the shards that are finished."""
        metrics = metrics_of_run(self.signature, self.statistics).items()
        each = [(one.headline, one.aggregate(self.statistics[name])) for name, one in metrics]
        return {headline: scores[headline] for headline, scores in each if headline in scores}
