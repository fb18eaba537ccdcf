"""What a run's results depend on, as plain JSON that can be compared field by field."""

from __future__ import annotations

from collections.abc import Iterator

from leporello.cache.dependencies import Dependencies, dependencies, files_of, signature_of
from leporello.config import PipelineSpec, Spec, TaskSpec
from leporello.core.errors import UserError
from leporello.core.records import JSON


def job_signature(pipeline: PipelineSpec, task: TaskSpec, data: str) -> dict[str, JSON]:
    """Returns what the results of one pipeline on one task depend on.

    Args:
        pipeline: Its config enters, and what its classes depend on.
        task: Its config and class enter.
        data: The fingerprint of the task's data.

    Raises:
        UserError: A model that is not there.
    """
    stages = (each for stage in pipeline.stages.items() for each in _depends(pipeline, *stage))
    # The content of a task's files stands in `data`.
    sources = [(spec.name, dependencies(spec.cls, {})) for spec in task.spec.all_specs()]
    return {
        "pipeline": pipeline.resolved(),
        "task": task.spec.resolved(),
        "data": data,
        **signature_of([*stages, *sources]),
    }


def named_files(pipeline: PipelineSpec) -> dict[str, str]:
    """Returns the content of the files that parameters of its stages name, by place."""
    specs = (spec for stage in pipeline.stages.values() for spec in stage.all_specs())
    return files_of([*spec.arguments().values()] for spec in specs)


def _depends(pipeline: PipelineSpec, key: str, stage: Spec) -> Iterator[tuple[str, Dependencies]]:
    for spec in stage.all_specs():
        try:
            yield spec.name, dependencies(spec.cls, spec.arguments())
        except UserError as error:
            raise UserError(f"{pipeline.name}.{key}: {error}") from None
