"""Signatures of jobs: all inputs that determine the results, as JSON that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.cache.dependencies import Dependencies, dependencies, files_of, signature_of
from leporello.config import PipelineSpec, Spec, TaskSpec
from leporello.config.metrics import metrics_of, specs_of
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry
from leporello.core.records import JSON
from leporello.metrics import METRICS, Metric


def job_signature(
    pipeline: PipelineSpec, task: TaskSpec, data: str, metrics: Sequence[MetricEntry] = ()
) -> dict[str, JSON]:
    """Returns the inputs that determine the results of one pipeline on one task.

    Args:
        pipeline: Pipeline, with its config and the dependencies of its classes.
        task: Task, with its config and class.
        data: Fingerprint of the task's data.
        metrics: Metrics of the job, with their classes.

    Raises:
        UserError: A model is missing.
    """
    stages = (row for stage in pipeline.stages.items() for row in _depends(pipeline, *stage))
    # `data` covers the content of a task's files.
    sources = [(spec.name, dependencies(spec.cls, {})) for spec in task.spec.all_specs()]
    sources += [(s.name, dependencies(s.cls, s.arguments())) for s in specs_of(metrics)]
    return {
        "pipeline": pipeline.resolved(),
        "task": task.resolved(),
        "data": data,
        **signature_of([*stages, *sources]),
    }


def readers_of(pipeline: Mapping[str, Any]) -> str:
    """Returns class and model of a pipeline's readers, such as `Seq2Seq google-t5/t5-base`.

    Args:
        pipeline: The `pipeline` of a signature. Readers of further roles are named with them.
    """
    roles = pipeline.get("readers", {})
    names = [_reader(pipeline["reader"]), *(f"{role}: {_reader(roles[role])}" for role in roles)]
    return ", ".join(names)


def _reader(spec: Mapping[str, Any]) -> str:
    inner = spec
    while "model" not in inner and isinstance(inner.get("reader"), Mapping):
        inner = inner["reader"]
    model = str(inner.get("model") or "")
    name = Path(model).name if Path(model).is_absolute() else model
    return f"{Path(inner['class']).name} {name}".rstrip()  # a plug-in's class has its file's path


def metrics_of_run(signature: Mapping[str, Any], names: Iterable[str]) -> dict[str, Metric]:
    """Returns metrics by name, with the parameters that a run was scored with.

    Args:
        signature: Signature of one of the run's jobs.
        names: Names of metrics in its statistics.

    Raises:
        UserError: A plug-in metric has changed or is missing.
    """
    wanted = [*names]
    entries = signature["task"].get("metrics", [])
    unneeded = METRICS.keys() - set(wanted)  # their libraries may not be installed
    metrics = metrics_of([e for e in entries if not (isinstance(e, str) and e in unneeded)])
    return {n: metrics[n] if n in metrics else metrics_of([n])[n] for n in wanted}


def named_files(pipeline: PipelineSpec) -> dict[str, str]:
    """Returns hashes of the files that parameters of a pipeline's stages name."""
    return files_of([*spec.arguments().values()] for spec in pipeline.all_specs())


def _depends(pipeline: PipelineSpec, key: str, stage: Spec) -> Iterator[tuple[str, Dependencies]]:
    for spec in stage.all_specs():
        try:
            yield spec.name, dependencies(spec.cls, spec.arguments())
        except UserError as error:
            raise UserError(f"{pipeline.name}.{key}: {error}") from None
