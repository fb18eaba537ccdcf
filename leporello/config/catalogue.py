"""What there is: pipelines, tasks, stages, metrics, with their signatures."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from leporello.config import Config, PipelineSpec
from leporello.config.parameters import parameters
from leporello.config.suites import Suite
from leporello.core.annotations import MODEL_MARK, SECRET_MARK, marked
from leporello.core.environment.classes import built_ins, find_class, origin, plug_ins
from leporello.core.errors import UserError, did_you_mean
from leporello.core.protocols import ALL_KINDS, TASK, Kind
from leporello.models.locate import locate

_CLASSES: Mapping[str, Kind] = {kind.title: kind for kind in ALL_KINDS}
KINDS_OF_THINGS = (
    "pipelines",
    "tasks",
    "suites",
    *(title for title in _CLASSES if title != "tasks"),
)


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
        classes = ([*built_ins(kind), *plug_ins().get(kind.group, ())] for kind in ALL_KINDS)
        known = [*KINDS_OF_THINGS, *chain.from_iterable(classes)]
        raise UserError(f"there is no list or class {what!r}{did_you_mean(what, known)}")
    return {kind: _list(config, kind) for kind in ([what] if what else KINDS_OF_THINGS)}


def _list(config: Config, kind: str) -> dict[str, str]:
    if kind == "pipelines":
        points = (point for group in config.pipelines.values() for point in group)
        return {p.name: p.description + _OFFLINE * runs_offline(p) for p in points}
    if kind == "tasks":
        named = {name: _first_line(task.spec.cls) for name, task in config.tasks.items()}
        return {**named, **_plug_ins(TASK)}
    if kind == "suites":
        return {name: _told(suite) for name, suite in config.suites.items()}
    found = built_ins(_CLASSES[kind]).items()
    return {
        **{_described(name, thing): _first_line(thing) for name, thing in found},
        **_plug_ins(_CLASSES[kind]),
    }


def _told(suite: Suite) -> str:
    parts = [f"columns: {', '.join(suite.columns)}", f"rows: {', '.join(suite.rows) or 'none'}"]
    return "; ".join(filter(None, [suite.description, *parts]))


def runs_offline(pipeline: PipelineSpec) -> bool:
    """Returns whether a pipeline runs as it is: all its models are here, and it calls no server.

    A model that is None has to be trained first.

    Args:
        pipeline: The pipeline, or one point of a sweep over it.
    """
    return all(
        _is_here(spec.arguments()[name], parameter.annotation)
        for spec in pipeline.all_specs()
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


def _plug_ins(kind: Kind) -> dict[str, str]:
    """Returns what installed packages offer, each with the package; one that fails says why."""
    listed: dict[str, str] = {}
    for name, points in plug_ins().get(kind.group, {}).items():
        whence = f" (from {' and '.join(map(origin, points))})"
        try:
            cls = find_class(name, kind, Path())
            listed[_described(name, cls)] = _first_line(cls) + whence
        except UserError as error:
            listed[name] = f"cannot be had: {str(error).partition(chr(10))[0]}{whence}"
    return listed


def _described(name: str, thing: object) -> str:
    """Returns a name with the parameters; a metric, say, may have none."""
    known = parameters(thing).values() if isinstance(thing, type) else ()
    given = ", ".join(str(one) for one in known if not callable(one.default) or one.required)
    return f"{name}({given})" if given or name[:1].isupper() else name


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]
