"""Runs pipelines with the same task and readers together over one stream of shards."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from leporello.config import PipelineSpec
from leporello.config.metrics import metrics_of
from leporello.core.calls.budget import SharedBudget
from leporello.core.calls.contracts import batching_of, sees_gold
from leporello.core.errors import BudgetSpentError, UserError
from leporello.core.files import append_rows, write_json
from leporello.core.hashing import digest
from leporello.core.protocols import SharesLimits
from leporello.core.records import JSON
from leporello.engine.database import StoreCounts
from leporello.engine.progress import Progress, ProgressCounts
from leporello.engine.task_examples import normalizer_of
from leporello.executors import Executor, executor_for
from leporello.executors.interface import (
    FIND_SIZES,
    JobGroupSpec,
    PipelineShare,
    ShardOrder,
    ShardResult,
)
from leporello.jobs.files import METRICS_FILE, JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.jobs.manifest import readers_of
from leporello.jobs.results import Result, Summary
from leporello.jobs.shards import Shard, cut, layout_of
from leporello.models.locate import size
from leporello.runs.later import LaterMetrics


def job_groups(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Yields groups with the same task, readers and placement, which share models and chunks."""
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        readers = {role: spec.resolved() for role, spec in job.pipeline.readers.items()}
        reader = json.dumps(readers, sort_keys=True)
        groups.setdefault(f"{job.task.name} {reader} {job.placement!r}", []).append(job)
    yield from groups.values()


class JobGroup:
    """Runs jobs on one task with the same readers together, and records progress in stores."""

    def __init__(self, jobs: Sequence[Job], context: RunContext, position: str = "") -> None:
        """Reads the progress of earlier processes; the title of progress begins with `position`."""
        self.jobs, self.context = jobs, context
        name = jobs[0].name if len(jobs) == 1 else f"{len(jobs)} pipelines on {jobs[0].task.name}"
        self._title = position + name
        self.files = [*map(context.files, jobs)]
        built: dict[str, Any] = {}
        self._stages = [job.pipeline.build(built) for job in jobs]
        self._sizes = context.directory.sizes().get(_sizes_key(jobs[0].pipeline), {})
        self._finished: list[dict[int, StoreCounts]] = [{} for _ in jobs]
        self._expected = jobs[0].expected(context.limit)
        self.stopped = ""
        self._shares = [PipelineShare() for _ in jobs]
        # Seconds until the first report of a worker, and from there to the end.
        self._clock = {"starting": 0.0, "working": 0.0}
        self._budgets: dict[str, SharedBudget] = {}  # by role, for readers that share limits

    def run(self, *, retry: bool) -> None:
        """Runs the unfinished examples, and the failed ones only to retry them."""
        has_work = not all(files.is_complete(self.context.limit) for files in self.files)
        if retry:
            has_work = any(files.mark.get("failures") for files in self.files)
        if has_work:
            self._finished = [*map(JobFiles.finished, self.files, self._runs)]
            self._run_shards(retry=False)
        if has_work and retry:
            self._run_shards(retry=True)

    def close(self) -> list[Result]:
        """Writes the result files from the finished examples, even if some are missing."""
        try:
            for files, finished in zip(self.files, self._finished, strict=True):
                if not files.is_merged:  # workers on other machines have uploaded stores
                    self.context.directory.download(map(files.store, finished))
            return [self._result(index) for index in range(len(self.jobs))]
        except OSError as error:
            raise UserError(
                f"{self.context.directory.path}: results cannot be written: {error.strerror}; the"
                " stores contain all finished examples: free some space and run the same command"
                " again"
            ) from error

    # -- one pass over the task --------------------------------------------------------------

    def _run_shards(self, *, retry: bool) -> None:
        job = self.jobs[0]
        total = None if self._expected is None else self._expected * len(self.jobs)
        models: Any = job.signature["models"]
        with Progress(self._title, total) as progress:

            def check() -> None:
                self.context.check(progress)

            def report(progressed: ProgressCounts) -> None:
                self._clock["starting"] = self._clock["starting"] or time.monotonic() - start
                progress.take(progressed)
                check()

            start = time.monotonic()
            with executor_for(
                self._spec(), job.placement, sum(map(size, models)), check,
                supervised=self.context.supervised,
            ) as executor:  # fmt: skip
                self._find_sizes(executor, check)
                for role, reader in self._stages[0].readers.items():
                    if isinstance(reader, SharesLimits):
                        self._budgets[role] = SharedBudget(reader.budget, executor.workers)
                for result in executor.run(self._orders(progress, retry=retry), report):
                    self._record(result)
            self._clock["working"] = time.monotonic() - start - self._clock["starting"]
        # Checked at the end: if data changed, workers have read either version of a file.
        if job.current_data() != job.signature["data"]:
            raise UserError(
                f"the data of task {job.task.name!r} changed while the run was reading them;"
                " run with --update to repeat the affected examples"
            )

    def _find_sizes(self, executor: Executor, check: Callable[[], None]) -> None:
        """Finds the batch sizes once, before the first shard, as results depend on them."""
        batchings = map(batching_of, self._stages[0].readers.values())
        # Measured once and stored: another size would form other batches (decision 3).
        if any(batching and batching.finds for batching in batchings) and not self._sizes:
            for result in executor.run([FIND_SIZES], lambda _: check()):
                if result.outcome == "died":
                    raise UserError(f"a worker process {result.error} while it loaded the model")
                self._sizes = {**result.sizes}
            self.context.directory.keep_sizes(_sizes_key(self.jobs[0].pipeline), self._sizes)
            # The manifest identifies the run of the stores.
            self.context.directory.upload(self.context.directory.manifest)

    def _orders(self, progress: Progress, *, retry: bool) -> Iterator[ShardOrder]:
        for shard in self._shards():
            self.context.check(progress)
            pending = (i for i in range(len(self.jobs)) if self._is_pending(i, shard, retry))
            indices = tuple(pending)
            if not retry:
                progress.already_done(shard.examples * (len(self.jobs) - len(indices)))
            if indices:
                for index in indices:
                    self.files[index].unmark()
                    # A retry that is stopped leaves the shard without its failed examples.
                    self._finished[index].pop(shard.number, None)
                yield ShardOrder(shard, indices, self._sizes, retry, self._budgets)

    def _is_pending(self, index: int, shard: Shard, retry: bool) -> bool:
        counts = self._finished[index].get(shard.number, StoreCounts())
        if counts.examples < shard.examples:
            return True
        # A retry under a smaller --limit would discard the shard's other examples.
        return retry and counts.failures > 0 and counts.examples == shard.examples

    def _shards(self) -> Iterator[Shard]:
        job, limits = self.jobs[0], self.context.limits
        layout = layout_of(job.source, job.task.name)
        return cut(layout, limits.shard_examples, limits.shard_bytes, self.context.limit)

    def _record(self, result: ShardResult) -> None:
        """Adds a worker's result for a shard to the counts and budgets."""
        for role, spent in result.spent.items():
            self._budgets[role].spent += spent
        # If only the worker's share of a budget is spent, another worker may still have some.
        if result.outcome == "spent" and any(b.is_spent for b in self._budgets.values()):
            raise BudgetSpentError(result.error)
        for index, share in result.pipelines.items():
            self._shares[index].add(share)
            if result.outcome == "finished":
                self._finished[index][result.shard] = share.counts
        names = [job.pipeline.name for job in self.jobs]
        append_rows(self.context.directory.workers, result.row(names, self.jobs[0].task.name))

    def _spec(self) -> JobGroupSpec:
        job, context = self.jobs[0], self.context
        spec = JobGroupSpec(
            pipelines=[job.pipeline for job in self.jobs],
            runs=self._runs,
            task=job.task,
            metrics=job.metrics,
            directory=context.directory,
            limits=context.limits,
            cache=context.cache.root if context.cache else None,
            selectors=job.placement.selectors,
            built=job.source,
        )
        return replace(spec, sources=spec.source_hashes())

    @cached_property
    def _runs(self) -> list[str]:
        # Limits count too: other batches change the last digits of a model's numbers.
        limits = asdict(self.context.limits)
        return [digest([{**job.signature}, limits]) for job in self.jobs]

    # -- results -------------------------------------------------------------------------------

    def _result(self, index: int) -> Result:
        """Returns the result of all finished examples of a job, even if they exceed the limit."""
        job, files = self.jobs[index], self.files[index]
        if files.is_complete(self.context.limit):
            return Result.from_row(files.read(METRICS_FILE))
        summary = Summary(metrics_of(job.metrics), job.pipeline.tuned_on)
        later = LaterMetrics(job, self.context)
        files.merge(summary, later.rows())
        self.stopped = self.stopped or later.stopped
        complete = self._is_complete(index)
        # The records decide: stages can end their process with status 0 (decision 40).
        if not complete and not self.stopped:  # even if workers and stages report success
            self.stopped = "examples have neither a prediction nor a failure"
        complete &= not later.stopped
        limit, expected = self.context.limit, self._expected
        if limit is not None and expected is not None and expected < limit:
            limit = None  # the data have fewer examples
        result = summary.result(
            job.pipeline.name,
            job.task.name,
            sees_gold=any(map(sees_gold, self._stages[index].all())),
            normalised=job.pipeline.normalised and normalizer_of(job.source) is not None,
            reader=readers_of(job.pipeline.resolved()),
        )
        files.write_metrics(result.row(), limit=limit, complete=complete)
        if self._shares[index].examples:
            write_json(files.folder / "timings.json", self._timings(index))
        return result

    def _is_complete(self, index: int) -> bool:
        finished = self._finished[index]
        return all(
            finished.get(shard.number, StoreCounts()).examples >= shard.examples
            for shard in self._shards()
        )

    def _timings(self, index: int) -> dict[str, JSON]:
        """Returns the amount of work that this process did for a job, and its duration."""
        share = self._shares[index]
        roles: dict[str, JSON] = {
            role: work.row() for role, work in share.reading.items() if work.reads or work.cached
        }
        return {
            "examples": share.examples,
            "clock": {**self._clock},
            "selecting": {n: getattr(share, n) for n in ("documents", "characters", "seconds")},
            "reading": share.read().row(),
            **({"roles": roles} if len(roles) > 1 else {}),
        }


def _sizes_key(pipeline: PipelineSpec) -> str:
    """Returns the key of the micro-batch sizes that a pipeline's readers determined."""
    return " ".join(digest(reader.resolved()) for reader in pipeline.readers.values())
