"""What is run: each pipeline on each task, checked before any work."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.config import (
    PipelineSpec,
    PlacementSpec,
    TaskSpec,
    load_config,
    placement_flags,
)
from leporello.config.layers import Layers
from leporello.config.loading import check_files
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.config.placement import Placement
from leporello.config.suites import suite_named
from leporello.core.errors import (
    ConfigError,
    EmptySubsetError,
    Fault,
    UserError,
    build_all,
    did_you_mean,
)
from leporello.core.hashing import differences
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import JSON
from leporello.engine.limits import Limits
from leporello.engine.progress import Progress
from leporello.engine.task_examples import task_errors
from leporello.jobs.directory import RunDirectory, run_name
from leporello.jobs.files import JobFiles
from leporello.jobs.options import JobOptions
from leporello.jobs.signature import job_signature
from leporello.metrics.protocol import Asks

if TYPE_CHECKING:
    from leporello.cache.store import Cache
    from leporello.storage.runs import RemoteRun

_log = logging.getLogger("leporello")


@dataclass(frozen=True)
class Job:
    """One pipeline on one task, checked and ready.

    Attributes:
        pipeline: One point of a sweep, if it sweeps.
        task: The task as declared.
        source: The task, built; its data has been checked.
        signature: Values that the results depend on.
        placement: Executor that it runs on, and the number and size of its workers.
    """

    pipeline: PipelineSpec
    task: TaskSpec
    source: Task
    signature: Mapping[str, JSON]
    placement: Placement = field(default=Placement(), compare=False)

    @property
    def name(self) -> str:
        """As a person would say it."""
        return f"{self.pipeline.name} on {self.task.name}"

    def row(self, limit: int | None) -> dict[str, Any]:
        """Returns the job as the manifest holds it."""
        names = {"pipeline": self.pipeline.name, "task": self.task.name}
        return {**names, "examples": self.expected(limit), "signature": dict(self.signature)}

    def expected(self, limit: int | None) -> int | None:
        """Returns how many examples there are, where the task knows; at most the limit.

        Raises:
            UserError: The task fails.
        """
        source = self.source
        if not isinstance(source, Sized):
            return limit
        with task_errors(self.task.name):
            return min(len(source), limit or sys.maxsize)

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The metrics that count."""
        return self.task.metrics_of(self.source)

    def current_data(self) -> str:
        """Returns the fingerprint that the task's data has now.

        Raises:
            UserError: The task fails.
        """
        with task_errors(self.task.name):
            return str(self.source.fingerprint())


@dataclass(frozen=True)
class RunContext:
    """What a run works with.

    Attributes:
        directory: Directory of the run.
        limits: Numbers that results depend on.
        limit: Examples a task at most.
        cache: Cache of what is derived; None caches nothing.
        check: Function that is called between steps; raises `Stopped` to end the run.
        remote: The run at a URL, of which the directory is a copy; None if it is at none.
        supervised: Whether a run of 0 workers has one where a stage may end or hang its process.
    """

    directory: RunDirectory
    limits: Limits
    limit: int | None
    cache: Cache | None
    check: Callable[[Progress], None]
    remote: RemoteRun | None = None
    supervised: bool = field(default_factory=lambda: not os.environ.get("LEPORELLO_UNSUPERVISED"))


def prepare(options: JobOptions) -> list[Job]:
    """Checks everything that a run needs, before any work.

    Raises:
        UserError: Whatever is wrong, all of it where it can be known at once.
    """
    pipelines, tasks, config = options.pipelines, options.tasks, options.config
    suite, split, overrides = options.suite, options.split, options.settings
    flags = placement_flags(options.placement)
    declared = Layers(config).pipelines if suite else ()
    wanted = suite_named(suite, config).jobs(pipelines, tasks, declared) if suite else []
    names = [*dict.fromkeys(pipeline for pipeline, _, _ in wanted)] or pipelines
    loaded = load_config(config, [*_laid_under(flags), *overrides], names)
    entries = [*map(entry_of, specs_of(options.metrics))]
    asked = (
        [
            (point, task.with_split(own) if own and task.has_splits else task)
            for p, t, own in wanted
            for task in loaded.tasks_named([t])
            for point in loaded.select([p])
        ]
        if suite
        else loaded.jobs(pipelines, tasks)
    )
    pairs = [
        (pipeline, (task.with_split(split) if split else task).with_metrics(entries))
        for pipeline, task in asked
    ]
    if overrides and not names:
        _check_overridden(loaded.default_pipeline, pairs)
    placed = _placements([pipeline for pipeline, _ in pairs], flags)
    check_files(pipeline for pipeline, _ in pairs)
    sources: dict[str, Task] = {task.name: task.spec.build() for _, task in pairs}
    counting = {task.name: task.metrics_of(sources[task.name]) for _, task in pairs}
    prints = _fingerprints(sources, counting, tasks or ([suite] if suite else []))
    pairs = [(pipeline, task) for pipeline, task in pairs if task.name in prints]
    for pipeline, task in pairs:
        _check_roles(pipeline, task.name, counting[task.name])
    check_files((pipeline for pipeline, _ in pairs), [prints[task.name] for _, task in pairs])
    signatures = [
        job_signature(pipeline, task, prints[task.name], counting[task.name])
        | {"threads": placed[pipeline.name].threads}
        for pipeline, task in pairs
    ]
    return [
        Job(pipeline, task, sources[task.name], signature, placed[pipeline.name])
        for (pipeline, task), signature in zip(pairs, signatures, strict=True)
    ]


def _check_roles(pipeline: PipelineSpec, task: str, entries: Sequence[MetricEntry]) -> None:
    """Refuses a metric that asks a reader which a pipeline lacks; tells readers nobody asks."""
    metrics = metrics_of(entries)
    asked = {m.role: name for name, m in metrics.items() if isinstance(m, Asks)}
    for role, metric in asked.items():
        if len(pipeline.readers) > 1 and role not in pipeline.readers:
            raise UserError(
                f"{pipeline.name} on {task}: the metric {metric} asks a reader of the role"
                f" {role!r}{did_you_mean(role, pipeline.readers)}"
            )
    for role in pipeline.unasked():
        if role not in asked:
            _log.info("%s.readers.%s: nobody asks that role", pipeline.name, role)


def _check_overridden(default: str, pairs: Iterable[tuple[PipelineSpec, TaskSpec]]) -> None:
    """Refuses settings for the default pipeline where a task has another one."""
    for pipeline, task in pairs:
        if (name := pipeline.name.partition("@")[0]) != default:
            raise UserError(
                f"--set changes the pipeline {default!r}, and {task.name} runs {name!r} if none is"
                f" named: run {name} --task {task.name} --set …"
            )


def _laid_under(flags: PlacementSpec) -> list[str]:
    """Returns the flags as overrides where they say Ray, so that `--set` may name what is its."""
    if flags.given.get("executor") != "ray":
        return []
    return [f"placement.{name}={json.dumps(value)}" for name, value in flags.given.items()]


def _placements(pipelines: Iterable[PipelineSpec], flags: PlacementSpec) -> dict[str, Placement]:
    """Returns where each pipeline runs, by name; the faults of all are told together."""

    def placed(pipeline: PipelineSpec) -> tuple[str, Placement]:
        return pipeline.name, pipeline.placement.under(flags, pipeline.name.partition("@")[0])

    return dict(build_all(pipelines, placed))


def _fingerprints(
    sources: Mapping[str, Task], metrics: Mapping[str, Sequence[MetricEntry]], asked: Sequence[str]
) -> dict[str, str]:
    """Reads all data once; the faults of all tasks are told together.

    A task that only a pattern asks for is left out where a file has no rows of it.
    """
    prints: dict[str, str] = {}
    faults: list[Fault] = []
    told: list[str] = []
    for name, source in sources.items():
        try:
            with task_errors(name):
                metrics_of(metrics[name])
                prints[name] = str(source.fingerprint())
        except EmptySubsetError as error:
            if name in asked or len(sources) == 1 or not asked:
                raise
            _log.warning("%s is left out: %s", name, error)
        except ConfigError as error:
            faults += error.faults
        except UserError as error:
            told.append(str(error))
    if faults:
        raise ConfigError(faults)
    if told:
        others = f"the others run with {' '.join(f'--task {name}' for name in prints)}"
        raise UserError("\n".join([*told, *([others] if prints else [])]))
    return prints


def job_directory(jobs: Sequence[Job], out: Path | None) -> Path:
    """Returns where these jobs leave their files: `out`, or `runs/NAME`."""
    identity: JSON = [
        [job.pipeline.name, job.signature["pipeline"], job.task.name, job.signature["task"],
         job.signature["data"]]
        for job in jobs
    ]  # fmt: skip
    pipelines, tasks = [job.pipeline.name for job in jobs], [job.task.name for job in jobs]
    return (out or Path("runs") / run_name(pipelines, tasks, identity)).resolve()


def changes(directory: RunDirectory, job: Job) -> tuple[str, ...]:
    """Returns each field in which a job differs from what an earlier run there was made with."""
    earlier = directory.jobs().get((job.pipeline.name, job.task.name), job.signature)
    return (*differences(earlier, job.signature),)


def finished_beside(directory: Path, jobs: Sequence[Job], limit: int | None) -> dict[str, Path]:
    """Returns which jobs are finished in other runs beside a run's directory, and in which.

    Args:
        directory: Directory of the run.
        jobs: Jobs to look for; of the very same signature.
        limit: Number of examples of a task at most.
    """
    found: dict[str, Path] = {}
    for manifest in sorted(directory.parent.glob("*/manifest.json")):
        other = RunDirectory(manifest.parent)
        known = other.jobs() if other.path != directory else {}
        for job in jobs:
            signature = known.get(key := (job.pipeline.name, job.task.name))
            same = signature and not any(differences(signature, job.signature))
            if same and JobFiles(other, *key).is_complete(limit):
                found.setdefault(job.name, other.path)
    return found
