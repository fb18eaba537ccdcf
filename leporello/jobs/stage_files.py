"""Checks of the files that stages name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

from leporello.config import PipelineSpec
from leporello.core.calls.nested import check_files as check_files_of
from leporello.core.errors import UserError
from leporello.core.secrets import is_set


def check_files(pipelines: Iterable[PipelineSpec], data: Iterable[str] = repeat("")) -> None:
    """Looks at the files that stages name, which loading a config does not open.

    Args:
        pipelines: Pipelines to look at; those for whose keys environment variables are not set are
            left out.
        data: The fingerprint of each one's task's data; empty where no task is known.

    Raises:
        UserError: Everything that is wrong with the files; points of a sweep are told once.
    """
    faults: dict[str, None] = {}
    for pipeline, fingerprint in zip(pipelines, data, strict=False):
        if not all(map(is_set, pipeline.variables())):
            continue
        name = pipeline.name.partition("@")[0]
        for key, spec in pipeline.stages.items():
            try:
                check_files_of(spec.build(), fingerprint)
            except UserError as error:
                faults |= {f"{name}.{key}: {line}": None for line in str(error).splitlines()}
    if faults:
        raise UserError("\n".join(faults))
