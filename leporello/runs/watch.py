"""Progress of a run, which another process reads in the stores of its shards as they change."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.core.files import Stamp, appended_rows, stamp
from leporello.engine.database import StoreCounts, counts_in, finished_in
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.manifest import metrics_of_run
from leporello.metrics.statistics import StatisticsTable

_RECENT = 60.0  # seconds over which the speed is measured


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of one pipeline on one task."""

    pipeline: str  # name of the pipeline
    task: str  # name of the task
    finished: int  # number of finished examples, including failures
    expected: int | None  # number of all examples; None if the task does not provide it
    failed: int  # number of failed examples
    shards: int  # number of finished shards
    under_way: int  # number of started, unfinished shards
    died: int  # number of times that a worker crashed during a shard
    per_second: float | None  # while watching; None if no example was finished
    scores: dict[str, float]  # headline score of each metric over finished shards

    @property
    def seconds_left(self) -> float | None:
        """Remaining seconds at the current speed; None if unknown."""
        if self.expected is None or not self.per_second:
            return None
        return (self.expected - self.finished) / self.per_second


class Watch:
    """Follows the shards of a run, reading each finished store once."""

    def __init__(self, run: Path) -> None:
        """Opens a run's directory without reading its stores."""
        self.directory = RunDirectory.of_run(run)
        self.directory.check_stores()
        self._followed: dict[tuple[str, str], _FollowedJob] = {}

    @property
    def running(self) -> bool:
        """Whether a process on this machine is executing the run."""
        return self.directory.runs_here()

    def look(self) -> list[JobProgress]:
        """Returns the current progress of each pipeline on each task."""
        rows = appended_rows(self.directory.workers)
        died_rows = (row for row in rows if row["outcome"] == "died")
        died = Counter((name, row["task"]) for row in died_rows for name in row["pipelines"])
        signatures = self.directory.jobs()
        for job in signatures.keys() - self._followed.keys():
            files = JobFiles(self.directory, *job)
            self._followed[job] = _FollowedJob(files, signatures[job])
        jobs = self.directory.expected().items()
        return [self._followed[job].look(expected, died[job]) for job, expected in jobs]


@dataclass
class _FollowedJob:
    """Counts and statistics from the stores of one job."""

    files: JobFiles
    signature: Mapping[str, Any]
    counts: dict[int, StoreCounts] = field(default_factory=dict)
    statistics: dict[str, StatisticsTable] = field(default_factory=dict)
    history: list[tuple[float, int]] = field(default_factory=list)  # times, finished examples
    _finished: dict[int, Stamp] = field(default_factory=dict)  # of stores, by shard

    def look(self, expected: int | None, died: int) -> JobProgress:
        """Reads the stores that have changed, and returns the progress."""
        for shard in self.files.stored_shards():
            current = stamp(self.files.store(shard))
            if self._finished.get(shard) != current:
                self._read(shard, current)
        finished = sum(counts.examples for counts in self.counts.values())
        return JobProgress(
            self.files.pipeline,
            self.files.task,
            finished,
            expected,
            failed=sum(counts.failures for counts in self.counts.values()),
            shards=len(self._finished),
            under_way=len(self.counts) - len(self._finished),
            died=died,
            per_second=self._speed(finished),
            scores=self._scores(),
        )

    def _read(self, shard: int, current: Stamp) -> None:
        # A finished store changes only when its failed examples are run again.
        if self._finished.pop(shard, None):
            self._finished.clear()
            self.statistics.clear()
        counts = self.counts[shard] = counts_in(self.files.store(shard))
        if counts.examples < counts.key.examples or not counts.examples:
            return
        self._finished[shard] = current
        for row in finished_in(self.files.store(shard)):
            for name, value in row.statistics.statistics.items():
                if value is not None:
                    self.statistics.setdefault(name, StatisticsTable()).append(value)

    def _speed(self, finished: int) -> float | None:
        now = time.monotonic()
        # The last minute only, since loading models and early shards would distort the mean.
        recent = [(moment, n) for moment, n in self.history if now - moment <= _RECENT]
        self.history = [*recent, (now, finished)]
        start, count = self.history[0]
        return (finished - count) / (now - start) if finished > count else None

    def _scores(self) -> dict[str, float]:
        """Returns the headline score of each metric over the finished shards."""
        metrics = metrics_of_run(self.signature, self.statistics).items()
        scores = [(m.headline, m.aggregate(self.statistics[name])) for name, m in metrics]
        return {headline: values[headline] for headline, values in scores if headline in values}
