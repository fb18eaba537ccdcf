"""Runs pipelines on tasks, resumes an earlier run, scores the answers and writes the results."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.cache.dependencies import warn_of_reuse
from leporello.cache.store import Cache
from leporello.core.errors import Stopped, UserError, counted
from leporello.core.files import cache_directory, read_rows
from leporello.core.hashing import differences
from leporello.core.records import Failure, Prediction
from leporello.engine.failures import time_limit
from leporello.engine.limits import Limits
from leporello.engine.progress import Progress
from leporello.engine.results.finished import prediction_from_row
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles
from leporello.jobs.interrupts import Interrupts
from leporello.jobs.jobs import Job, RunContext, changes, finished_beside, job_directory, prepare
from leporello.jobs.manifest import write_manifest
from leporello.jobs.options import RunOptions, takes
from leporello.jobs.results import Result, result_tables
from leporello.runs.job_group import JobGroup, job_groups
from leporello.storage import RemotePath
from leporello.storage.runs import remote_run

if TYPE_CHECKING:
    from pandas import DataFrame

_log = logging.getLogger("leporello")
_FEW = 100  # examples; a failure rate over fewer is not meaningful


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: Directory of the run's files.
        results: Results, one per pipeline and task, in the order of the options.
        stopped: Reason why the run stopped early; empty if it is complete.
    """

    directory: Path
    results: tuple[Result, ...]
    stopped: str = ""

    def to_pandas(self) -> DataFrame:
        """Returns a table of scores and coverage, one row per pipeline and task.

        Raises:
            UserError: pandas is not installed.
        """
        from leporello.core.table import frame

        rows = ((r.row().items(), r.scores) for r in self.results)
        return frame({n: v for n, v in row if not isinstance(v, dict)} | {**s} for row, s in rows)

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the scores and the coverage of each pipeline."""
        from leporello.core.table import html

        return "".join(map(html, result_tables(self.results)))

    @property
    def failures(self) -> int:
        """Number of failed examples in all results."""
        return sum(result.failures for result in self.results)

    @property
    def cured(self) -> int:
        """Number of examples that failed in a batch and succeeded alone, in all results."""
        return sum(result.cured for result in self.results)

    @property
    def faults(self) -> int:
        """Number of errors in metrics, in all results; no prediction is lost by them."""
        return sum(len(result.faults) for result in self.results)

    def failed(self, pipeline: str, task: str) -> Iterator[Failure]:
        """Yields the failures of one pipeline on one task, in task order."""
        folder = RunDirectory(self.directory).results(pipeline, task)
        for row in read_rows(folder / "failures.jsonl"):
            yield Failure(row["id"], row["stage"], row["error"])

    def predictions(self, pipeline: str, task: str) -> Iterator[Prediction]:
        """Yields the predictions of one pipeline on one task, in task order."""
        files = JobFiles(RunDirectory(self.directory), pipeline, task)
        files.check("predictions.jsonl")
        return map(prediction_from_row, read_rows(files.folder / "predictions.jsonl"))


def _check_failures(max_failures: float | None, progress: Progress) -> None:
    """Raises `Stopped` above a number of failed examples, or a share of them if below 1."""
    if max_failures is None:
        return
    allowed = max_failures
    if 0 < allowed < 1:
        allowed *= progress.examples or max(progress.finished, _FEW)
    if progress.failed > allowed:
        raise Stopped(f"{counted(progress.failed, 'example')} failed (--max-failures)")


@takes(RunOptions)
def run(options: RunOptions) -> Run:
    """Runs pipelines on tasks and scores them; the same call again resumes.

    Raises:
        UserError: The user made a mistake; raised before the run starts if possible.
    """
    limits, limit = options.limits, options.limit
    _check_limits(limits, limit, options.max_failures)
    jobs = prepare(options)
    for job in jobs:
        job.placement.check()
    cache = Cache(cache_directory()) if options.cached else None
    path = job_directory(jobs, options.directory)
    finished_runs = finished_beside(path, jobs, limit) if options.suite else {}
    for name, finished_run in finished_runs.items():
        _log.info("%s is finished in %s", name, finished_run)
    jobs = [job for job in jobs if job.name not in finished_runs]
    if not jobs:
        return Run(path.parent, ())
    signals = options.interrupts or Interrupts()
    with ExitStack() as stack:
        is_remote = isinstance(path, RemotePath)
        remote = stack.enter_context(remote_run(str(path))) if is_remote else None
        directory = RunDirectory(remote.directory if remote else path, remote)
        stack.enter_context(directory.locked())
        stack.enter_context(signals)

        def check(progress: Progress) -> None:
            signals.check()
            if remote:
                remote.check()
            _check_failures(options.max_failures, progress)

        context = RunContext(directory, limits, limit, cache, check)
        _compare(context, jobs, update=options.update)
        stages = ((s.cls, s.arguments()) for job in jobs for s in job.pipeline.all_specs())
        root, resumed = cache.root if cache else None, directory.manifest.exists()
        warn_of_reuse(root, stages, resumed=resumed)
        rows = [_manifest_row(context, job) for job in jobs]
        write_manifest(directory, rows, asdict(limits))
        with _published(context, jobs):
            return _run_all(jobs, context)


@contextmanager
def _published(context: RunContext, jobs: Sequence[Job]) -> Iterator[None]:
    """Uploads the driver's files of a run at a URL; workers upload their shards themselves."""
    directory, files = context.directory, [*map(context.files, jobs)]
    if directory.remote is None:
        yield
        return
    first = [directory.manifest, directory.config]
    # After --update, the stores at the URL belong to the old settings.
    removed = [path for job in files for path in (job.stores, job.folder) if not path.exists()]
    directory.upload(*first, *removed)
    try:
        yield
    finally:
        results = [path for job in files for path in job.results()]
        try:
            # Results last: if they are at the URL, so is everything that they depend on.
            directory.upload(*first, directory.workers, *results)
        except UserError as error:
            raise UserError(
                f"{error}. The run has ended; all files are in {directory.path}; run the same"
                " command again to upload them"
            ) from error


def _run_all(jobs: Sequence[Job], context: RunContext) -> Run:
    """Runs unfinished examples; if all are finished, runs failed ones again."""
    files = [*map(context.files, jobs)]
    for of_job in files:
        of_job.unmark_changed()
    # Only in a finished run. A run that was killed is the same command too: if it retried failures
    # on the way, their reads would join batches of other examples (decision 12).
    retry = all(of_job.is_complete(context.limit) for of_job in files)
    results: dict[str, Result] = {}
    stopped = ""
    groups = [*job_groups(jobs)]
    for number, of_group in enumerate(groups, 1):
        position = f"{number} of {len(groups)}: " if len(groups) > 1 else ""
        group = JobGroup(of_group, context, position)
        try:
            if not stopped:  # afterwards the groups only write their result files
                group.run(retry=retry)
        except Stopped as reason:
            stopped = str(reason)
        except UserError:
            with suppress(UserError):  # only the first error is reported
                group.close()
            raise
        finished = zip(of_group, group.close(), strict=True)
        results |= {job.name: result for job, result in finished}
        stopped = stopped or group.stopped
    return Run(context.directory.path, tuple(results[job.name] for job in jobs), stopped)


def _check_limits(limits: Limits, limit: int | None, max_failures: float | None) -> None:
    if limit is not None and limit < 1:
        raise UserError(f"limit must be at least 1, got {limit}")
    integers = {n: v for n, v in asdict(limits).items() if isinstance(v, int)}
    if wrong := [name for name, number in integers.items() if number < 1]:
        raise UserError(f"{wrong[0]} must be at least 1")
    if max_failures is not None and not max_failures >= 0:
        raise UserError(f"max_failures must be at least 0, got {max_failures}")
    if limits.example_timeout is not None:
        if not limits.example_timeout > 0:
            raise UserError(f"example_timeout must be above 0, got {limits.example_timeout}")
        with time_limit(limits.example_timeout):  # raises an error where limits are unsupported
            pass


def _manifest_row(context: RunContext, job: Job) -> dict[str, Any]:
    """Returns a job's row; its number of examples includes those that an earlier run finished."""
    names = {"pipeline": job.pipeline.name, "task": job.task.name}
    if (expected := job.expected(context.limit)) is not None:
        expected = max(expected, context.files(job).mark.get("examples", 0))
    return {**names, "examples": expected, "signature": dict(job.signature)}


def _compare(context: RunContext, jobs: Sequence[Job], *, update: bool) -> None:
    """Raises an error if the directory's run had other settings; with `update`, discards it."""
    directory = context.directory
    directory.check_stores()
    # Other sizes form other batches, in which a prompt can decode to another text; the time limit
    # affects only failures.
    earlier = {
        n: v for n, v in directory.read().get("limits", {}).items() if n != "example_timeout"
    }
    now = {name: getattr(context.limits, name, value) for name, value in earlier.items()}
    changed_limits = [*differences({"limits": earlier}, {"limits": now})]
    changed = {job.name: (*changes(directory, job), *changed_limits) for job in jobs}
    stale = [job for job in jobs if changed[job.name]]
    if stale and not update:
        listing = "\n".join(f"  {job.name}: {text}" for job in stale for text in changed[job.name])
        raise UserError(
            f"{directory.path} was created with other settings:\n{listing}\n"
            "run with --update to repeat the affected examples, or choose another --out"
        )
    # Only now, after all checks: an error must not cost finished work.
    for job in stale:
        context.files(job).discard()
