"""Lists of pipelines, tasks, suites, stages and metrics, with their signatures.

`python -m leporello.config.reference.catalogue` prints `papers/names.json`, the table of built-in
names.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.config.built_in import SECTIONS, built_in_files, built_in_names, built_in_path
from leporello.core.annotations import MODEL_MARK, SECRET_MARK, marked
from leporello.core.environment.classes import built_ins, find_class, origin, plug_ins
from leporello.core.errors import UserError, no_such
from leporello.core.protocols import ALL_KINDS, TASK, Kind
from leporello.core.records import JSON
from leporello.models.locate import locate

if TYPE_CHECKING:
    from leporello.config import Config, PipelineSpec
    from leporello.config.suites import Suite
    from leporello.core.yaml.tree import ConfigSource

_CLASSES: Mapping[str, Kind] = {kind.title: kind for kind in ALL_KINDS}
KINDS_OF_THINGS = (*SECTIONS, *(title for title in _CLASSES if title != TASK.title))
_OFFLINE = " (runs offline)"


def listing(files: Sequence[ConfigSource] = (), what: str = "") -> dict[str, dict[str, str]]:
    """Returns, by kind of thing, each name with its description.

    Args:
        files: Config files of the user; without them the table of built-in names is enough.
        what: Kind of thing, one of `KINDS_OF_THINGS`; all of them if empty.

    Raises:
        UserError: There is no such kind of thing, and no class of that name.
        ConfigError: Everything that is wrong with the files.
    """
    if what and what not in KINDS_OF_THINGS:
        classes = ([*built_ins(kind), *plug_ins().get(kind.group, ())] for kind in ALL_KINDS)
        known = [*KINDS_OF_THINGS, *chain.from_iterable(classes)]
        raise UserError(no_such("list or class", what, known))
    config = _loaded(files) if files else None
    return {kind: _list(config, kind) for kind in ([what] if what else KINDS_OF_THINGS)}


def _loaded(files: Sequence[ConfigSource]) -> Config:
    from leporello.config import load_config

    return load_config(files)


def _list(config: Config | None, kind: str) -> dict[str, str]:
    declared = _declared(config, kind) if kind in SECTIONS else {}
    if kind == TASK.title:
        return {**declared, **_plug_ins(TASK)}
    if declared:
        return declared
    found = built_ins(_CLASSES[kind]).items()
    return {
        **{_described(name, thing): _first_line(thing) for name, thing in found},
        **_plug_ins(_CLASSES[kind]),
    }


def _declared(config: Config | None, kind: str) -> dict[str, str]:
    """Returns the pipelines, tasks or suites: the table's, and the user's."""
    rows = {**built_in_names()[kind]}
    if kind != "pipelines":
        own = getattr(config, kind).ready if config else {}
        rows |= {name: _ROWS[kind](declared) for name, declared in own.items()}
    elif config and config.pipelines.ready:  # of the user's, which those of the table may extend
        rows = {p.name: _row(p) for p in chain.from_iterable(config.pipelines.values())}
    return {name: row["description"] + _OFFLINE * _is_offline(row) for name, row in rows.items()}


def names_table() -> dict[str, dict[str, dict[str, JSON]]]:
    """Returns the table of built-in names: by section and name the file, and the row for `list`."""
    from leporello.core.yaml.tree import read_tree

    loaded = _loaded(built_in_files())
    table: dict[str, dict[str, dict[str, JSON]]] = {key: {} for key in SECTIONS}
    for path in built_in_files():
        file, sections = path.relative_to(built_in_path().parent).as_posix(), read_tree(path).items
        for key in (key for key in SECTIONS if key in sections):
            for name in sections[key].items:
                table[key][name] = {"file": file, **_ROWS[key](getattr(loaded, key)[name])}
    return table


def _row(point: PipelineSpec) -> dict[str, Any]:
    return {"description": point.description, "models": _models(point)}


def _columns_and_rows(suite: Suite) -> str:
    parts = [f"columns: {', '.join(suite.columns)}", f"rows: {', '.join(suite.rows) or 'none'}"]
    return "; ".join(filter(None, [suite.description, *parts]))


_ROWS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "pipelines": lambda points: _row(points[0]),
    "tasks": lambda task: {"description": _first_line(task.spec.cls)},
    "suites": lambda s: {"description": _columns_and_rows(s), "tasks": [*s.tasks]},
}


def _models(pipeline: PipelineSpec) -> list[str] | None:
    """Returns a pipeline's models; None if it calls a server, or a model has to be trained."""
    from leporello.config.parameters import parameters

    models: list[str] = []
    for spec in pipeline.all_specs():
        values = spec.arguments()
        for name, parameter in parameters(spec.cls).items():
            value = values[name]
            if marked(parameter.annotation, SECRET_MARK):  # a key is for a server
                return None
            if not marked(parameter.annotation, MODEL_MARK) or value == "words":
                continue
            if not isinstance(value, str):
                return None
            models.append(value)
    return models


def _is_offline(row: Mapping[str, Any]) -> bool:
    """Returns whether this is a pipeline whose models are all here, and that calls no server."""
    models = row.get("models")
    try:
        return models is not None and all(Path(locate(model)).exists() for model in models)
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
    from leporello.config.parameters import parameters

    known = parameters(thing).values() if isinstance(thing, type) else ()
    given = ", ".join(str(one) for one in known if not callable(one.default) or one.required)
    return f"{name}({given})" if given or name[:1].isupper() else name


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


if __name__ == "__main__":
    print(json.dumps(names_table(), indent=1, ensure_ascii=False))  # noqa: T201 -- its output
