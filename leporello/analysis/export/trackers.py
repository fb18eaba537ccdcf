"""A finished run in the trackers that people keep their experiments in: MLflow, Weights & Biases.

Where they keep them, and under which key, these libraries know from their own environment variables
(`MLFLOW_TRACKING_URI`, `WANDB_MODE`, …).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from leporello.core.coverage import PARTS
from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import read_json
from leporello.jobs.directory import RunDirectory

Tracker: TypeAlias = Literal["mlflow", "wandb"]

_FILES = ("predictions.jsonl", "failures.jsonl", "metrics.json", "timings.json")
_COUNTS = ("examples", "failures", "empty", *PARTS)
_LONGEST = 500  # letters of a parameter, as MLflow's own limit has it


@dataclass(frozen=True, slots=True)
class _TrackedJob:
    """One pipeline on one task, as a tracker shows it."""

    name: str
    parameters: Mapping[str, Any]
    numbers: Mapping[str, float]
    tags: dict[str, str]
    files: tuple[Path, ...]


def track(run: Path, tracker: Tracker, *, project: str = "leporello") -> list[str]:
    """Puts every pipeline on every task of a run into a tracker, as a run of its own.

    Parameters are those of the pipeline's stages, `retriever.k`; numbers the scores and the ledger;
    files the predictions, failures, metrics, timings and the run's config.

    Args:
        run: Directory of the run.
        tracker: Name of the tracker whose library is asked.
        project: Name of the project in the tracker; MLflow calls this an experiment.

    Returns:
        Their names.

    Raises:
        UserError: No run lies there, none of it is finished, or the tracker's extra is missing.
    """
    directory = RunDirectory.of_run(run)
    jobs = [*_tracked(directory)]
    if not jobs:
        raise UserError(f"{run}: no finished run lies there")
    send = _to_mlflow if tracker == "mlflow" else _to_wandb
    require(f"track --to {tracker}", tracker)
    for job in jobs:
        send(job, project)
    return [job.name for job in jobs]


def _tracked(directory: RunDirectory) -> Iterator[_TrackedJob]:
    for (pipeline, task), signature in directory.jobs().items():
        folder = directory.results(pipeline, task)
        if not (folder / "metrics.json").exists():
            continue
        metrics = read_json(folder / "metrics.json")
        files = (*(folder / name for name in _FILES), directory.config, directory.manifest)
        yield _TrackedJob(
            name=f"{pipeline} on {task}",
            parameters=dict(_flat(signature["pipeline"])),
            numbers={**metrics["scores"], **{name: float(metrics[name]) for name in _COUNTS}},
            tags={
                "pipeline": pipeline,
                "task": task,
                "data": str(signature["data"]),
                "sees_gold": str(metrics["sees_gold"]).lower(),
                "directory": str(directory.path.resolve()),
            },
            files=tuple(path for path in files if path.exists()),
        )


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- of JSON
    """Yields the leaves of nested mappings and lists by their paths, `retriever.retrievers.0.k`."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, inner in items:
        own = f"{path}.{key}" if path else str(key)
        if isinstance(inner, (Mapping, list)) and inner:
            yield from _flat(inner, own)
        else:
            yield own, inner


def _to_mlflow(job: _TrackedJob, project: str) -> None:
    import mlflow

    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=job.name):
        mlflow.log_params({name: str(value)[:_LONGEST] for name, value in job.parameters.items()})
        # Brackets, as in `accuracy[3]`, are not allowed there.
        numbers = {name.replace("[", "/").replace("]", ""): n for name, n in job.numbers.items()}
        mlflow.log_metrics(numbers)
        mlflow.set_tags(job.tags)
        for path in job.files:
            mlflow.log_artifact(str(path))


def _to_wandb(job: _TrackedJob, project: str) -> None:
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
