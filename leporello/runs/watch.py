"""Progress of a run, which is read in the stores of its shards while other processes write them."""

import time
from dataclasses import dataclass
from pathlib import Path

from leporello.core.files import Stamp, stamp
from leporello.engine.database import StoreCounts, counts_in
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles


@dataclass(frozen=True, slots=True)
class JobProgress:
    """Progress of one pipeline on one task."""

    pipeline: str  # name of the pipeline
    task: str  # name of the task
    finished: int  # number of finished examples, including failures
    failed: int  # number of failed examples
    expected: int | None  # number of all examples; None if the task does not provide it
    per_second: float  # finished examples since the first look

    @property
    def is_complete(self) -> bool:
        """Whether all examples are finished."""
        return self.finished == self.expected


class Watch:
    """Follows the stores of a run, and reads each one only when it has changed."""

    def __init__(self, run: Path) -> None:
        """Opens a run's directory; raises UserError without one."""
        self._directory = RunDirectory.of_run(run)
        self._directory.check_stores()
        self._counts: dict[Path, tuple[Stamp, StoreCounts]] = {}
        self._first: dict[tuple[str, str], tuple[float, int]] = {}  # time, finished examples

    def look(self) -> list[JobProgress]:
        """Returns the current progress of each pipeline on each task."""
        jobs = self._directory.expected().items()
        return [self._progress(JobFiles(self._directory, *job), n) for job, n in jobs]

    def _progress(self, files: JobFiles, expected: int | None) -> JobProgress:
        counts = [self._count(files.store(shard)) for shard in files.stored_shards()]
        finished = sum(count.examples for count in counts)
        failed = sum(count.failures for count in counts)
        now, job = time.monotonic(), (files.pipeline, files.task)
        start, before = self._first.setdefault(job, (now, finished))
        speed = (finished - before) / (now - start) if now > start else 0.0
        return JobProgress(*job, finished, failed, expected, speed)

    def _count(self, store: Path) -> StoreCounts:
        current = stamp(store)
        if store not in self._counts or self._counts[store][0] != current:
            self._counts[store] = current, counts_in(store)
        return self._counts[store][1]
