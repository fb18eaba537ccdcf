"""A run: pipelines on tasks, resumed where it was left, scored, and its files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.cache.store import Cache, warn_of_reuse
from leporello.core.coverage import shown
from leporello.core.errors import Stopped, UserError
from leporello.core.files import read_rows
from leporello.core.records import Failure, Prediction
from leporello.engine.failures import time_limit
from leporello.engine.limits import Limits
from leporello.engine.progress import Progress
from leporello.engine.results.serialization import prediction_from_row
from leporello.jobs.checksums import check_results
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.interrupts import Interrupts
from leporello.jobs.jobs import Job, RunContext, changes, finished_beside, job_directory, prepare
from leporello.jobs.manifest import write_manifest
from leporello.jobs.options import RunOptions, takes
from leporello.jobs.results import Result
from leporello.models.locate import cache_directory
from leporello.runs.batch import Batch, batches
from leporello.runs.verify import ResultDifference, Verification, verify_job
from leporello.storage import RemotePath
from leporello.storage.runs import RemoteRun, remote_run

if TYPE_CHECKING:
    from pandas import DataFrame

_log = logging.getLogger("leporello")
_FEW = 100  # examples; a share of fewer says nothing


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: Directory of the run's files.
        results: Results, one a pipeline and task, in the order asked for.
        stopped: Reason why it ended before it was complete; empty if it is complete.
        verified: Verifications, one a pipeline and task; none unless asked for.
    """

    directory: Path
    results: tuple[Result, ...]
    stopped: str = ""
    verified: tuple[Verification, ...] = ()

    def to_pandas(self) -> DataFrame:
        """Returns a row a pipeline and task: scores, and shares of the ledger.

        Raises:
            UserError: pandas is not installed.
        """
        from leporello.core.table import frame

        rows = ((r.row().items(), r.scores) for r in self.results)
        return frame({n: v for n, v in row if not isinstance(v, dict)} | {**s} for row, s in rows)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the scores and the ledger of each pipeline."""
        from leporello.core.table import ResultTable, html

        names = list(dict.fromkeys(name for result in self.results for name in result.scores))
        parts = shown(result.shares for result in self.results)
        rows = tuple(
            (
                result.pipeline,
                result.task,
                *(f"{result.scores[n]:.2f}" if n in result.scores else "" for n in names),
                f"{result.examples:,}",
                f"{result.failures:,}",
                *(f"{result.shares[part]:.1%}" for part in parts),
            )
            for result in self.results
        )
        ledger = ("examples", "failed", *parts)
        return html([ResultTable(str(self.directory), ("pipeline", "task", *names, *ledger), rows)])

    @property
    def failures(self) -> int:
        """How many examples failed, over all results."""
        return sum(result.failures for result in self.results)

    @property
    def cured(self) -> int:
        """At how many examples a stage failed with others and not alone, over all results."""
        return sum(result.cured for result in self.results)

    @property
    def faults(self) -> int:
        """How many faults of metrics there are, over all results; no prediction is lost by them."""
        return sum(len(result.faults) for result in self.results)

    @property
    def differing(self) -> tuple[ResultDifference, ...]:
        """What came out otherwise when it was run again."""
        return tuple(d for verification in self.verified for d in verification.differing)

    def failed(self, pipeline: str, task: str) -> Iterator[Failure]:
        """Yields the failures of one pipeline on one task, in task order."""
        folder = RunDirectory(self.directory).results(pipeline, task)
        for row in read_rows(folder / "failures.jsonl"):
            yield Failure(row["id"], row["stage"], row["error"])

    def predictions(self, pipeline: str, task: str) -> Iterator[Prediction]:
        """Yields the predictions of one pipeline on one task, in task order."""
        folder = RunDirectory(self.directory).results(pipeline, task)
        check_results(folder, "predictions.jsonl")
        return map(prediction_from_row, read_rows(folder / "predictions.jsonl"))


def _check_failures(max_failures: float | None, progress: Progress) -> None:
    """Raises `Stopped` if more failed than may: a number, or below 1 a share of the examples."""
    if max_failures is None:
        return
    allowed = max_failures
    if 0 < allowed < 1:
        allowed *= progress.examples or max(progress.finished, _FEW)
    if progress.failed > allowed:
        raise Stopped(f"{progress.failed} examples failed (--max-failures)")


@takes(RunOptions)
def run(options: RunOptions) -> Run:
    """Runs pipelines on tasks and scores them; the same call again resumes.

    Raises:
        UserError: Any mistake of the user's; before any work where it can be known then.
    """
    limits, limit = options.limits, options.limit
    _check(limits, options.max_failures)
    jobs = prepare(options)
    for job in jobs:
        job.placement.check()
    cache = Cache(cache_directory()) if options.cached else None
    path = job_directory(jobs, options.directory)
    is_suite = options.suite and isinstance(path, Path)
    elsewhere = finished_beside(path, jobs, limit) if is_suite else {}
    for name, other in elsewhere.items():
        _log.info("%s is finished in %s", name, other)
    jobs = [job for job in jobs if job.name not in elsewhere]
    if not jobs:
        return Run(path.parent, ())
    signals = options.interrupts or Interrupts()
    with _locked(path) as (directory, remote), signals:
        _compare(directory, jobs, limits, update=options.update)
        write_manifest(directory, [job.row(limit) for job in jobs], asdict(limits))

        def check(progress: Progress) -> None:
            signals.check()
            if remote:
                remote.check()
            _check_failures(options.max_failures, progress)

        context = RunContext(directory, limits, limit, cache, check, remote)
        with _published(context, jobs):
            done = _run_all(jobs, context)
            if options.verify and not done.stopped:
                done = _verified(done, jobs, context)
    warn_of_reuse()
    return done


@contextmanager
def _locked(path: Path) -> Iterator[tuple[RunDirectory, RemoteRun | None]]:
    """Keeps other processes out of a run's directory; of one at a URL, the copy is worked in."""
    if not isinstance(path, RemotePath):
        with (directory := RunDirectory(path)).locked():
            yield directory, None
        return
    with remote_run(str(path)) as run, (directory := RunDirectory(run.directory)).locked():
        yield directory, run


@contextmanager
def _published(context: RunContext, jobs: Sequence[Job]) -> Iterator[None]:
    """Puts what the driver writes of a run at a URL where it belongs: workers put their shards."""
    directory, remote = context.directory, context.remote
    if remote is None:
        yield
        return
    first = [directory.manifest, directory.config]
    files = [JobFiles(directory, job.pipeline.name, job.task.name) for job in jobs]
    removed = [path for one in files for path in (one.stores, one.folder) if not path.exists()]
    remote.put(*map(directory.name_of, [*first, *removed]))
    try:
        yield
    finally:
        results = [path for one in files for path in one.results()]
        try:
            last = [*first, directory.workers, directory.logs, *results]
            remote.put(*map(directory.name_of, last))
        except UserError as error:
            copied = f"all of it is in {remote.directory}, and the same command puts it there"
            raise UserError(f"{error}. The run has ended; {copied}") from error


def _verified(done: Run, jobs: Sequence[Job], context: RunContext) -> Run:
    """Runs a sample of each job again."""
    verifications: list[Verification] = []
    try:
        for job in jobs:
            verifications.append(verify_job(job, context))  # noqa: PERF401 -- what came before a stop is kept
    except Stopped as reason:
        done = replace(done, stopped=str(reason))
    return replace(done, verified=tuple(verifications))


def _run_all(jobs: Sequence[Job], context: RunContext) -> Run:
    """Runs what is left; if that is nothing, tries again what failed."""
    pass_ = _Pass(jobs, context)
    pass_.work(Batch.run)
    failed = any(result.failures for result in pass_.results.values())
    # In a pass of their own: a run that was killed must end as one that was not (decision 12).
    if failed and pass_.was_merged and not pass_.wrote and not pass_.stopped:
        pass_.work(Batch.retry)
    results = tuple(pass_.results[job.name] for job in jobs)
    return Run(context.directory.path, results, pass_.stopped)


class _Pass:
    """Goes through all batches; once one is stopped, the others only derive their files."""

    def __init__(self, jobs: Sequence[Job], context: RunContext) -> None:
        self.jobs, self.context = jobs, context
        self.results: dict[str, Result] = {}
        self.stopped, self.wrote, self.was_merged = "", False, True

    def work(self, task: Callable[[Batch], None]) -> None:
        for group in batches(self.jobs):
            batch = Batch(group, self.context)
            try:
                if not self.stopped:
                    task(batch)
            except Stopped as reason:
                self.stopped = str(reason)
            except UserError:
                with suppress(UserError):  # the first error is the one to tell
                    batch.close()
                raise
            self.wrote |= batch.wrote
            self.was_merged &= batch.was_merged
            finished = zip(group, batch.close(), strict=True)
            self.results |= {job.name: result for job, result in finished}
            self.stopped = self.stopped or batch.stopped


def _check(limits: Limits, max_failures: float | None) -> None:
    """Refuses numbers that mean nothing."""
    integers = {n: v for n, v in asdict(limits).items() if isinstance(v, int)}
    if wrong := [name for name, number in integers.items() if number < 1]:
        raise UserError(f"{wrong[0]} must not be so low: give at least 1")
    if max_failures is not None and not max_failures >= 0:
        raise UserError(f"max_failures must be a number from 0 on, got {max_failures}")
    if limits.example_timeout is not None:
        if not limits.example_timeout > 0:
            raise UserError(f"example_timeout must be above 0, got {limits.example_timeout}")
        with time_limit(limits.example_timeout):  # which tells where there can be none
            pass


def _compare(directory: RunDirectory, jobs: Sequence[Job], limits: Limits, *, update: bool) -> None:
    """Holds what the directory was made with against what is asked for now."""
    directory.check_version()
    directory.check_stores()
    other = limits.differences(directory.limits())
    changed = {job.name: (*changes(directory, job), *other) for job in jobs}
    stale = [job for job in jobs if changed[job.name]]
    if stale and not update:
        listing = "\n".join(f"  {job.name}: {text}" for job in stale for text in changed[job.name])
        raise UserError(
            f"{directory.path} was made with something else:\n{listing}\n"
            "run with --update to do again what this touches, or give another --out"
        )
    for job in stale:
        JobFiles(directory, job.pipeline.name, job.task.name).discard()
