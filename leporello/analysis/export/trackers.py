"""Logs a finished run to an experiment tracker: MLflow or Weights & Biases.

Their libraries read where to log from their own environment variables (`MLFLOW_TRACKING_URI`,
`WANDB_MODE`, …).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leporello.analysis.finished import FinishedJob, FinishedRun
from leporello.core.coverage import PARTS
from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.jobs.files import METRICS_FILE, RESULTS

_COUNTS = ("examples", "failures", "empty", *PARTS)
_LONGEST = 500  # characters of a parameter, the limit of MLflow


def track(run: Path, tracker: str, *, project: str = "leporello") -> list[str]:
    """Logs every finished job of a run as a run of the tracker, and returns the names of the jobs.

    Parameters are those of the pipeline's stages, numbers the scores and the coverage, files the
    results and the run's config. `tracker` is `mlflow`, which calls the project an experiment, or
    `wandb`. Raises UserError if no job is finished, or an extra is missing.
    """
    require(f"track --to {tracker}", tracker)
    jobs = [job for job in FinishedRun.at(run).jobs if job.merged]
    if not jobs:
        raise UserError(f"{run}: the run has no finished jobs")
    log = _mlflow if tracker == "mlflow" else _wandb
    for job in jobs:
        log(job, project)
    return [job.name for job in jobs]


def _mlflow(job: FinishedJob, project: str) -> None:
    import mlflow

    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=job.name):
        mlflow.log_params({name: str(value)[:_LONGEST] for name, value in _parameters(job)})
        # MLflow does not allow brackets in names, as in `accuracy[3]`.
        numbers = _numbers(job).items()
        mlflow.log_metrics({n.replace("[", "/").replace("]", ""): value for n, value in numbers})
        mlflow.set_tags({"pipeline": job.pipeline, "task": job.task})
        for path in _files(job):
            mlflow.log_artifact(str(path))


def _wandb(job: FinishedJob, project: str) -> None:
    import wandb

    config = {**dict(_parameters(job)), "run.pipeline": job.pipeline, "run.task": job.task}
    with wandb.init(project=project, name=job.name, config=config, reinit=True) as tracked:
        tracked.summary.update(_numbers(job))
        for path in _files(job):
            tracked.save(str(path), base_path=str(path.parent), policy="now")


def _numbers(job: FinishedJob) -> dict[str, float]:
    return {**job.merged["scores"], **{name: float(job.merged[name]) for name in _COUNTS}}


def _files(job: FinishedJob) -> list[Path]:
    results = (job.files.folder / name for name in (*RESULTS, METRICS_FILE))
    directory = job.run.directory
    return [path for path in (*results, directory.config, directory.manifest) if path.exists()]


def _parameters(job: FinishedJob) -> Iterator[tuple[str, Any]]:
    return _leaves(job.signature["pipeline"], "")


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 -- of JSON
    """Yields paths and values of the leaves of nested JSON, such as `retriever.retrievers.0.k`."""
    if isinstance(value, (Mapping, list)) and value:
        for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value
