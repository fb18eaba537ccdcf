"""Jobs: pairs of pipeline and task, which are checked before any work."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.config import PipelineSpec, TaskSpec, load_config
from leporello.config.layers import Layers
from leporello.config.loading import check_files
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.config.placement import Placement
from leporello.config.suite_files import suite_named
from leporello.core.errors import ConfigError, EmptySubsetError, UserError, did_you_mean
from leporello.core.hashing import differences
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import JSON
from leporello.engine.limits import Limits
from leporello.engine.progress import Progress
from leporello.engine.task_examples import task_errors
from leporello.jobs.directory import RunDirectory, run_name
from leporello.jobs.files import JobFiles
from leporello.jobs.manifest import job_signature
from leporello.jobs.options import JobOptions
from leporello.metrics.protocol import Asks

if TYPE_CHECKING:
    from leporello.cache.store import Cache

_log = logging.getLogger("leporello")


@dataclass(frozen=True)
class Job:
    """One pipeline on one task, checked and ready."""

    pipeline: PipelineSpec  # pipeline, or one point of a sweep
    task: TaskSpec
    source: Task  # task as an object; its data has been checked
    signature: Mapping[str, JSON]  # values that determine the results

    @property
    def placement(self) -> Placement:
        """Where the job runs."""
        return self.pipeline.placement

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.pipeline.name} on {self.task.name}"

    def expected(self, limit: int | None) -> int | None:
        """Returns the number of examples, at most the limit; None if it is unknown."""
        if not isinstance(self.source, Sized):
            return limit
        with task_errors(self.task.name):
            return min(len(self.source), limit or sys.maxsize)

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """Metrics of the job."""
        return self.task.metrics_of(self.source)

    def current_data(self) -> str:
        """Returns the current fingerprint of the task's data."""
        with task_errors(self.task.name):
            return str(self.source.fingerprint())


@dataclass(frozen=True)
class RunContext:
    """Settings of a run that all of its jobs share."""

    directory: RunDirectory
    limits: Limits  # limits of batches, shards and time
    limit: int | None  # maximum number of examples per task; None for all
    cache: Cache | None  # cache; None disables caching
    check: Callable[[Progress], None]  # called between steps; raises `Stopped` to end the run
    # Whether a run with 0 workers uses one worker if a stage could end or hang its process.
    supervised: bool = field(default_factory=lambda: not os.environ.get("LEPORELLO_UNSUPERVISED"))

    def files(self, job: Job) -> JobFiles:
        """Returns the files of a job."""
        return JobFiles(self.directory, job.pipeline.name, job.task.name)


def prepare(options: JobOptions) -> list[Job]:
    """Builds and checks the jobs of a run, before any work; reports all faults if possible."""
    pipelines, tasks, config = options.pipelines, options.tasks, options.config
    suite, split, overrides = options.suite, options.split, options.settings
    declared = Layers(config).pipelines if suite else ()
    in_suite = suite_named(suite, config).jobs(pipelines, tasks, declared) if suite else []
    names = [*dict.fromkeys(pipeline for pipeline, _, _ in in_suite)] or pipelines
    loaded = load_config(config, overrides, names, options.placement)
    entries = [*map(entry_of, specs_of(options.metrics))]
    selected = (
        [
            (point, task.with_split(of_task) if of_task and task.has_splits else task)
            for p, t, of_task in in_suite
            for point, task in loaded.jobs([p], [t])
        ]
        if suite
        else loaded.jobs(pipelines, tasks)
    )
    pairs = [
        (pipeline, (task.with_split(split) if split else task).with_metrics(entries))
        for pipeline, task in selected
    ]
    if overrides and not names:
        _check_overridden(loaded.default_pipeline, pairs)
    check_files(pipeline for pipeline, _ in pairs)
    sources: dict[str, Task] = {task.name: task.spec.build() for _, task in pairs}
    metrics = {task.name: task.metrics_of(sources[task.name]) for _, task in pairs}
    data = _fingerprints(sources, metrics, tasks or ([suite] if suite else []))
    pairs = [(pipeline, task) for pipeline, task in pairs if task.name in data]
    for pipeline, task in pairs:
        _check_roles(pipeline, task.name, metrics[task.name])
    check_files((pipeline for pipeline, _ in pairs), [data[task.name] for _, task in pairs])
    jobs = []
    for pipeline, task in pairs:
        signature = job_signature(pipeline, task, data[task.name], metrics[task.name])
        signature["threads"] = pipeline.placement.threads
        jobs.append(Job(pipeline, task, sources[task.name], signature))
    return jobs


def _check_roles(pipeline: PipelineSpec, task: str, entries: Sequence[MetricEntry]) -> None:
    """Raises if a metric uses a role without a reader; logs the readers that nothing uses."""
    metrics = metrics_of(entries)
    used = {m.role: name for name, m in metrics.items() if isinstance(m, Asks)}
    for role, metric in used.items():
        if len(pipeline.readers) > 1 and role not in pipeline.readers:
            raise UserError(
                f"{pipeline.name} on {task}: the metric {metric} requires a reader with the role"
                f" {role!r}{did_you_mean(role, pipeline.readers)}"
            )
    for role in pipeline.unasked():
        if role not in used:
            _log.info("%s.readers.%s: no stage or metric uses this role", pipeline.name, role)


def _check_overridden(default: str, pairs: Iterable[tuple[PipelineSpec, TaskSpec]]) -> None:
    """Raises if `--set` changes the default pipeline, but a task has another default."""
    for pipeline, task in pairs:
        if (name := pipeline.name.partition("@")[0]) != default:
            raise UserError(
                f"--set changes the pipeline {default!r}, but the default of {task.name} is"
                f" {name!r}; name it: run {name} --task {task.name} --set …"
            )


def _fingerprints(
    sources: Mapping[str, Task], metrics: Mapping[str, Sequence[MetricEntry]], names: Sequence[str]
) -> dict[str, str]:
    """Returns the fingerprints of all data; reports the faults of all tasks together.

    A task that is not in `names`, but matches a pattern, is skipped if its subset is empty.
    """
    fingerprints: dict[str, str] = {}
    errors: list[UserError] = []
    for name, source in sources.items():
        try:
            with task_errors(name):
                metrics_of(metrics[name])
                fingerprints[name] = str(source.fingerprint())
        except EmptySubsetError as error:
            if name in names or len(sources) == 1 or not names:
                raise
            _log.warning("%s is skipped: %s", name, error)
        except UserError as error:
            errors.append(error)
    if errors:
        faults = [error.faults for error in errors if isinstance(error, ConfigError)]
        is_config = len(faults) == len(errors)
        raise (
            ConfigError([*chain(*faults)]) if is_config else UserError("\n".join(map(str, errors)))
        )
    return fingerprints


def job_directory(jobs: Sequence[Job], out: Path | None) -> Path:
    """Returns the directory of a run of these jobs: `out`, or `runs/NAME`."""
    identity: JSON = [
        [job.pipeline.name, job.signature["pipeline"], job.task.name, job.signature["task"],
         job.signature["data"]]
        for job in jobs
    ]  # fmt: skip
    pipelines, tasks = [job.pipeline.name for job in jobs], [job.task.name for job in jobs]
    return (out or Path("runs") / run_name(pipelines, tasks, identity)).resolve()


def changes(directory: RunDirectory, job: Job) -> tuple[str, ...]:
    """Returns the differences between the signatures of an earlier run and of a job."""
    earlier = directory.jobs().get((job.pipeline.name, job.task.name), job.signature)
    return (*differences(earlier, job.signature),)


def finished_beside(directory: Path, jobs: Sequence[Job], limit: int | None) -> dict[str, Path]:
    """Returns directories of neighbouring runs that finished equal jobs, by the name of the job."""
    paths: dict[str, Path] = {}
    for manifest in sorted(directory.parent.glob("*/manifest.json")):
        run = RunDirectory(manifest.parent)
        signatures = run.jobs() if run.path != directory else {}
        for job in jobs:
            signature = signatures.get(key := (job.pipeline.name, job.task.name))
            is_same = signature and not any(differences(signature, job.signature))
            if is_same and JobFiles(run, *key).is_complete(limit):
                paths.setdefault(job.name, run.path)
    return paths
