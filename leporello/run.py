"""A run: pipelines on tasks, resumed where it was left, scored, and its files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from leporello.calls import sees_gold
from leporello.config import Built, PipelineSpec, Spec, TaskSpec, load_config
from leporello.directory import RunDirectory, read_rows, run_name, write_json
from leporello.engine import Engine, Limits
from leporello.errors import ConfigError, Fault, UserError
from leporello.journal import Journal
from leporello.manifest import write_manifest
from leporello.metrics import Metric, make_metrics
from leporello.progress import Progress
from leporello.records import JSON, Failure, Prediction
from leporello.results import Result, summarise
from leporello.rows import prediction_from_row
from leporello.signature import differences, job_signature
from leporello.stages import Task
from leporello.supply import checked_metrics, examples_of, users_task

__all__ = ["Job", "Run", "changes", "job_directory", "prepare", "run"]


@dataclass(frozen=True)
class Job:
    """One pipeline on one task, checked and ready.

    Attributes:
        pipeline: One point of a sweep, if it sweeps.
        task: As declared.
        source: The task, built; its data has been checked.
        signature: What the results depend on.
    """

    pipeline: PipelineSpec
    task: TaskSpec
    source: Task
    signature: Mapping[str, JSON]

    @property
    def name(self) -> str:
        """As a person would say it."""
        return f"{self.pipeline.name} on {self.task.name}"

    def row(self) -> dict[str, Any]:
        """Returns the job as the manifest holds it."""
        names = {"pipeline": self.pipeline.name, "task": self.task.name}
        return {**names, "signature": dict(self.signature)}


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        directory: Where its files lie.
        results: One a pipeline and task, in the order run.
    """

    directory: Path
    results: tuple[Result, ...]

    @property
    def failures(self) -> int:
        """How many examples failed, over all results."""
        return sum(result.failures for result in self.results)

    def failed(self, pipeline: str, task: str) -> Iterator[Failure]:
        """Yields the failures of one pipeline on one task, in task order."""
        folder = RunDirectory(self.directory).results(pipeline, task)
        for row in read_rows(folder / "failures.jsonl"):
            yield Failure(row["id"], row["stage"], row["error"])

    def predictions(self, pipeline: str, task: str) -> Iterator[Prediction]:
        """Yields the predictions of one pipeline on one task, in task order."""
        folder = RunDirectory(self.directory).results(pipeline, task)
        return map(prediction_from_row, read_rows(folder / "predictions.jsonl"))


def prepare(
    pipelines: Sequence[str] = (),
    tasks: Sequence[str] = (),
    *,
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    split: str = "",
) -> list[Job]:
    """Checks everything that a run needs, before any work; see `run` for the arguments.

    Raises:
        UserError: Whatever is wrong, all of it where it can be known at once.
    """
    loaded = load_config(config, overrides, pipelines)
    pairs = [
        (pipeline, task.with_split(split) if split else task)
        for pipeline in loaded.select(pipelines)
        for task in loaded.select_tasks(pipeline, tasks)
    ]
    sources: dict[str, Task] = {task.name: task.spec.build() for _, task in pairs}
    prints = _fingerprints(sources)
    return [
        Job(pipeline, task, sources[task.name], job_signature(pipeline, task, prints[task.name]))
        for pipeline, task in pairs
    ]


def _fingerprints(sources: Mapping[str, Task]) -> dict[str, str]:
    """Reads all data once; the faults of all tasks are told together."""
    prints: dict[str, str] = {}
    faults: list[Fault] = []
    for name, source in sources.items():
        try:
            with users_task(name):
                make_metrics(checked_metrics(source))
                prints[name] = str(source.fingerprint())
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    return prints


def run(
    pipelines: Sequence[str] = (),
    tasks: Sequence[str] = (),
    *,
    config: Sequence[Path] = (),
    overrides: Sequence[str] = (),
    split: str = "",
    limit: int | None = None,
    out: Path | None = None,
    update: bool = False,
    limits: Limits = Limits(),  # noqa: B008 -- frozen
) -> Run:
    """Runs pipelines on tasks and scores them; the same call again resumes.

    Args:
        pipelines: Names, names of sweep points or `*` patterns; the default one if empty.
        tasks: Names; if empty those of each pipeline, or else the default one.
        config: The user's own files, laid over the built-in one.
        overrides: As `--set`: `retriever.k=5,10`.
        split: Replaces the split of every task.
        limit: Examples a task at most.
        out: The run's directory; by default `runs/NAME`, named after what is run.
        update: Do again what was made with another config, source, model or data, rather than
            refuse.
        limits: How much is under way at once.

    Raises:
        UserError: Any mistake of the user's; before any work where it can be known then.
    """
    jobs = prepare(pipelines, tasks, config=config, overrides=overrides, split=split)
    directory = RunDirectory(job_directory(jobs, out))
    workshop = _Workshop({})
    with directory.held():
        _compare(directory, jobs, update=update)
        write_manifest(directory, [job.row() for job in jobs], asdict(limits))
        results = [_run_job(job, directory, workshop, limit, limits) for job in jobs]
    return Run(directory.path, tuple(results))


def job_directory(jobs: Sequence[Job], out: Path | None) -> Path:
    """Returns where these jobs leave their files: `out`, or `runs/NAME`."""
    identity: JSON = [
        [job.pipeline.name, job.signature["pipeline"], job.task.name, job.signature["task"],
         job.signature["data"]]
        for job in jobs
    ]  # fmt: skip
    pipelines, tasks = [job.pipeline.name for job in jobs], [job.task.name for job in jobs]
    return (out or Path("runs") / run_name(pipelines, tasks, identity)).resolve()


@dataclass(frozen=True)
class _Workshop:
    """Builds each distinct stage once, so that a model is loaded once for all pipelines."""

    built: dict[str, Any]

    def build(self, pipeline: PipelineSpec) -> Built:
        return Built(**{key: self._stage(spec) for key, spec in pipeline.stages.items()})

    def _stage(self, spec: Spec) -> Any:  # noqa: ANN401 -- of the spec's class
        key = json.dumps(spec.resolved(), sort_keys=True)
        if key not in self.built:
            self.built[key] = spec.build()
        return self.built[key]


def _run_job(
    job: Job, directory: RunDirectory, workshop: _Workshop, limit: int | None, limits: Limits
) -> Result:
    journal = Journal(directory.journal(job.pipeline.name, job.task.name))
    metrics: Mapping[str, Metric] = make_metrics(job.source.metrics)
    stages = workshop.build(job.pipeline)
    before, started = len(journal.done), time.monotonic()
    try:
        with Progress(job.name, _expected(job, limit)) as progress:
            engine = Engine(stages, journal, metrics, progress, limits)
            engine.run(islice(examples_of(job.source, job.task.name), limit))
    finally:
        directory.write_results(job.pipeline.name, job.task.name, journal)
        journal.close()
    folder = directory.results(job.pipeline.name, job.task.name)
    result = summarise(
        job.pipeline.name,
        job.task.name,
        journal.rows(),
        metrics,
        sees_gold=any(map(sees_gold, stages.all())),
    )
    if len(journal.done) > before:
        seconds = time.monotonic() - started
        timings: dict[str, JSON] = {
            **engine.timings(),
            "examples": len(journal.done) - before,
            "total": seconds,
        }
        write_json(folder / "timings.json", timings)
    write_json(folder / "metrics.json", asdict(result))
    return result


def _expected(job: Job, limit: int | None) -> int | None:
    """Returns how many examples are to come, where the task knows."""
    source = job.source
    if not isinstance(source, Sized):
        return limit
    with users_task(job.task.name):
        return min(len(source), limit or sys.maxsize)


def changes(directory: RunDirectory, job: Job) -> tuple[str, ...]:
    """Returns each field in which a job differs from what an earlier run there was made with."""
    known = directory.jobs().get((job.pipeline.name, job.task.name), job.signature)
    return tuple(differences(known, job.signature))


def _compare(directory: RunDirectory, jobs: Sequence[Job], *, update: bool) -> None:
    """Holds what the directory was made with against what is asked for now."""
    changed = {job.name: changes(directory, job) for job in jobs}
    stale = [job for job in jobs if changed[job.name]]
    if stale and not update:
        told = "\n".join(f"  {job.name}: {text}" for job in stale for text in changed[job.name])
        raise UserError(
            f"{directory.path} was made with something else:\n{told}\n"
            "run with --update to do again what this touches, or give another --out"
        )
    for job in stale:
        directory.journal(job.pipeline.name, job.task.name).unlink(missing_ok=True)
