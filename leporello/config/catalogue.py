"""What there is: pipelines, tasks, stages, metrics, with their signatures."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from leporello.config import Config, PipelineSpec
from leporello.config.parameters import parameters
from leporello.core.annotations import marked
from leporello.core.errors import UserError, did_you_mean
from leporello.core.protocols import KINDS, LOADER, MODEL_MARK, SECRET_MARK
from leporello.metrics import METRICS
from leporello.models.locate import locate

__all__ = ["KINDS_OF_THINGS", "listing", "runs_offline"]

_PACKAGES: Mapping[str, str] = {f"{kind.key}s": kind.package for kind in (*KINDS.values(), LOADER)}
KINDS_OF_THINGS = ("pipelines", "tasks", *_PACKAGES, "metrics")


_OFFLINE = " (runs offline)"


def listing(config: Config, what: str = "") -> dict[str, dict[str, str]]:
    """Returns, by kind of thing, each name with its description.

    Args:
        config: The config that pipelines and tasks come from.
        what: Kind of thing, one of `KINDS_OF_THINGS`; all of them if empty.

    Raises:
        UserError: There is no such kind of thing, and no class of that name.
    """
    if what and what not in KINDS_OF_THINGS:
        classes = (importlib.import_module(package).__all__ for package in _PACKAGES.values())
        known = [*KINDS_OF_THINGS, *METRICS, *chain.from_iterable(classes)]
        raise UserError(f"there is no list or class {what!r}{did_you_mean(what, known)}")
    return {kind: _list(config, kind) for kind in ([what] if what else KINDS_OF_THINGS)}


def _list(config: Config, kind: str) -> dict[str, str]:
    if kind == "pipelines":
        points = (point for group in config.pipelines.values() for point in group)
        return {p.name: p.description + _OFFLINE * runs_offline(p) for p in points}
    if kind == "tasks":
        return {name: _first_line(task.spec.cls) for name, task in config.tasks.items()}
    if kind == "metrics":
        return {name: _first_line(cls) for name, cls in METRICS.items()}
    return _classes(_PACKAGES[kind])


def runs_offline(pipeline: PipelineSpec) -> bool:
    """Returns whether a pipeline runs as it is: all its models are here, and it calls no server.

    A model that is None has to be trained first.

    Args:
        pipeline: The pipeline, or one point of a sweep over it.
    """
    specs = chain.from_iterable(spec.all_specs() for spec in pipeline.stages.values())
    return all(
        _is_here(spec.arguments()[name], parameter.annotation)
        for spec in specs
        for name, parameter in parameters(spec.cls).items()
    )


def _is_here(value: object, annotation: object) -> bool:
    if marked(annotation, SECRET_MARK):  # a key is for a server
        return False
    if not marked(annotation, MODEL_MARK) or value == "words":
        return True
    try:
        return isinstance(value, str) and Path(locate(value)).exists()
    except UserError:
        return False


def _classes(package: str) -> dict[str, str]:
    module = importlib.import_module(package)
    names: Sequence[str] = module.__all__
    classes: dict[str, Any] = {name: getattr(module, name) for name in names}
    return {
        f"{name}({', '.join(map(str, parameters(cls).values()))})": _first_line(cls)
        for name, cls in classes.items()
    }


def _first_line(cls: type) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]
