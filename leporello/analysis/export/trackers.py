"""Logs a finished run to experiment trackers: MLflow, Weights & Biases, or a plug-in class.

A plug-in tracker has a method `track(job, project)`, which is called with each `TrackedJob`. The
built-in trackers are configured by the environment variables of their libraries
(`MLFLOW_TRACKING_URI`, `WANDB_MODE`, …).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedRun
from leporello.config.sweeps import spec_of
from leporello.core.coverage import PARTS
from leporello.core.environment.extras import require
from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import UserError
from leporello.core.protocols import TRACKER

_FILES = ("predictions.jsonl", "failures.jsonl", "metrics.json", "timings.json")
_COUNTS = ("examples", "failures", "empty", *PARTS)
_LONGEST = 500  # characters of a parameter, the limit of MLflow


@dataclass(frozen=True, slots=True)
class TrackedJob:
    """One pipeline on one task, as it is logged to a tracker.

    Attributes:
        parameters: Parameters of the pipeline's stages by path, such as `retriever.k`.
        numbers: Scores and counts by name.
        tags: Other facts by name.
    """

    name: str
    parameters: Mapping[str, Any]
    numbers: Mapping[str, float]
    tags: dict[str, str]
    files: tuple[Path, ...]


def track(run: Path, tracker: str, *, project: str = "leporello") -> list[str]:
    """Logs every job of a run to a tracker as a separate run, and returns the names of the jobs.

    Numbers are the scores and the coverage; files are the predictions, failures, metrics, timings
    and config. `tracker` is a name, `./file.py:Class`, or YAML of a mapping with `class`. MLflow
    calls the project an experiment. Raises UserError if no job is finished, or an extra is missing.
    """
    jobs = [*_tracked(FinishedRun.at(run))]
    if not jobs:
        raise UserError(f"{run}: the run has no finished jobs")
    logger = spec_of(tracker, TRACKER, "--to").build()
    with user_code_errors(f"track --to {tracker}"):
        for job in jobs:
            logger.track(job, project)
    return [job.name for job in jobs]


def _tracked(run: FinishedRun) -> Iterator[TrackedJob]:
    directory = run.directory
    for job in run.jobs:
        folder = job.files.folder
        if not (metrics := job.merged):
            continue
        files = (*(folder / name for name in _FILES), directory.config, directory.manifest)
        yield TrackedJob(
            name=job.name,
            parameters=dict(_flat(job.signature["pipeline"])),
            numbers={**metrics["scores"], **{name: float(metrics[name]) for name in _COUNTS}},
            tags={
                "pipeline": job.pipeline,
                "task": job.task,
                "data": str(job.signature["data"]),
                **{n: str(metrics.get(n, False)).lower() for n in ("sees_gold", "normalised")},
                "directory": str(directory.path.resolve()),
            },
            files=tuple(path for path in files if path.exists()),
        )


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- of JSON
    """Yields paths and values of the leaves of nested JSON, such as `retriever.retrievers.0.k`."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, inner in items:
        inner_path = f"{path}.{key}" if path else str(key)
        if isinstance(inner, (Mapping, list)) and inner:
            yield from _flat(inner, inner_path)
        else:
            yield inner_path, inner


@dataclass(frozen=True)
class Mlflow:
    """Logs to an MLflow experiment; `MLFLOW_TRACKING_URI` sets the server or folder."""

    def track(self, job: TrackedJob, project: str) -> None:
        """Logs a job as a run; needs the extra `mlflow`."""
        require("track --to mlflow", "mlflow")
        import mlflow

        mlflow.set_experiment(project)
        with mlflow.start_run(run_name=job.name):
            mlflow.log_params(
                {name: str(value)[:_LONGEST] for name, value in job.parameters.items()}
            )
            # MLflow does not allow brackets in names, as in `accuracy[3]`.
            numbers = {
                name.replace("[", "/").replace("]", ""): n for name, n in job.numbers.items()
            }
            mlflow.log_metrics(numbers)
            mlflow.set_tags(job.tags)
            for path in job.files:
                mlflow.log_artifact(str(path))


@dataclass(frozen=True)
class Wandb:
    """Logs to a Weights & Biases project; variables such as `WANDB_MODE` configure it."""

    def track(self, job: TrackedJob, project: str) -> None:
        """Logs a job as a run; needs the extra `wandb`."""
        require("track --to wandb", "wandb")
        import wandb

        config = {**job.parameters, **{f"run.{name}": value for name, value in job.tags.items()}}
        tracked = wandb.init(project=project, name=job.name, config=config, reinit=True)
        try:
            for name, number in job.numbers.items():
                tracked.summary[name] = number
            for path in job.files:
                tracked.save(str(path), base_path=str(path.parent), policy="now")
        finally:
            tracked.finish()


TRACKERS: Mapping[str, type] = {"mlflow": Mlflow, "wandb": Wandb}
