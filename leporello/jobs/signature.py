"""What a run's results depend on, as plain JSON that can be compared field by field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """Returns what the results of one pipeline on one task depend on.

    Args:
        pipeline: Its config enters, and what its classes depend on.
        task: Its config and class enter.
        data: The fingerprint of the task's data.
        metrics: Metrics that count; their classes enter.

    Raises:
        UserError: A model that is not there.
    """
    stages = (each for stage in pipeline.stages.items() for each in _depends(pipeline, *stage))
    # The content of a task's files stands in `data`.
    sources = [(spec.name, dependencies(spec.cls, {})) for spec in task.spec.all_specs()]
    sources += [(s.name, dependencies(s.cls, s.arguments())) for s in specs_of(metrics)]
    return {
        "pipeline": pipeline.resolved(),
        "task": task.resolved(),
        "data": data,
        **signature_of([*stages, *sources]),
    }


def metrics_of_run(signature: Mapping[str, Any], names: Iterable[str]) -> dict[str, Metric]:
    """Returns the metrics of these names as a run was scored by them.

    Args:
        signature: Signature of one of the run's jobs.
        names: Names of metrics in its statistics.

    Raises:
        UserError: A metric of the user's own is not what or where it was.
    """
    wanted = [*names]
    listed = signature["task"].get("metrics", [])
    unneeded = METRICS.keys() - set(wanted)  # whose library may not be here
    made = metrics_of([e for e in listed if not (isinstance(e, str) and e in unneeded)])
    return {name: made[name] if name in made else metrics_of([name])[name] for name in wanted}


def named_files(pipeline: PipelineSpec) -> dict[str, str]:
    """Returns the content of the files that parameters of its stages name, by place."""
    return files_of([*spec.arguments().values()] for spec in pipeline.all_specs())


def _depends(pipeline: PipelineSpec, key: str, stage: Spec) -> Iterator[tuple[str, Dependencies]]:
    for spec in stage.all_specs():
        try:
            yield spec.name, dependencies(spec.cls, spec.arguments())
        except UserError as error:
            raise UserError(f"{pipeline.name}.{key}: {error}") from None
