"""Lists of pipelines, tasks, suites, stages and metrics; as a program, it prints `names.json`."""

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
from leporello.core.errors import UserError, likely
from leporello.core.protocols import ALL_KINDS, TASK, Kind
from leporello.core.records import JSON
from leporello.models.locate import locate

if TYPE_CHECKING:
    from leporello.config import Config, PipelineSpec
    from leporello.config.suites import Suite
    from leporello.core.yaml.tree import ConfigSource

_CLASSES: Mapping[str, Kind] = {kind.title: kind for kind in ALL_KINDS}
KINDS_OF_THINGS = (*SECTIONS, *(title for title in _CLASSES if title != TASK.title))
_OFFLINE = " (offline)"
_STARTERS = (
    "default", "best-sentence", "lead", "ask-smollm2", "ask-fused", "ask-flan-t5", "ask-extractive",
    "over-files", "muld-narrativeqa", "scrolls-bart-1024", "shuffle-gpt2",
)  # fmt: skip


def starters() -> dict[str, tuple[str, str]]:
    """Returns pipelines to begin with, with their descriptions and needs."""
    rows = built_in_names()["pipelines"]
    return {name: (rows[name]["description"], _needs(rows[name])) for name in _STARTERS}


def _needs(row: Mapping[str, Any]) -> str:
    """Returns the downloads that a pipeline needs; empty if it runs offline."""
    if _is_offline(row):
        return ""
    models = row.get("models")
    return "a server, or a trained model" if models is None else " ".join(dict.fromkeys(models))


def listing(
    files: Sequence[ConfigSource] = (), what: str = "", word: str = "", *, is_offline: bool = False
) -> dict[str, dict[str, str]]:
    """Returns names with their descriptions, by list.

    `what` is the only list, one of `KINDS_OF_THINGS`; all if empty. A name or description must
    contain `word`, in any case. Offline are pipelines that call no server and need no download.
    """
    if what and what not in KINDS_OF_THINGS:
        classes = ([*built_ins(kind), *plug_ins().get(kind.group, ())] for kind in ALL_KINDS)
        names = [*KINDS_OF_THINGS, *chain.from_iterable([*classes, *built_in_names().values()])]
        hint = likely(what, names) or f"; lists: {', '.join(KINDS_OF_THINGS)}"
        raise UserError(f"{what!r} is not a list or an entry{hint}")
    config = _loaded(files) if files else None
    lists = {kind: _list(config, kind) for kind in ([what] if what else KINDS_OF_THINGS)}
    if not word and not is_offline:
        return lists
    ending = _OFFLINE if is_offline else ""
    chosen = {
        kind: {
            name: text.removesuffix(ending)
            for name, text in entries.items()
            if word.lower() in f"{name} {text}".lower() and text.endswith(ending)
        }
        for kind, entries in lists.items()
    }
    return {kind: entries for kind, entries in chosen.items() if entries}


def _loaded(files: Sequence[ConfigSource]) -> Config:
    from leporello.config import load_config

    return load_config(files)


def _list(config: Config | None, kind: str) -> dict[str, str]:
    declared = _declared(config, kind) if kind in SECTIONS else {}
    if kind == TASK.title:
        return {**declared, **_plug_ins(TASK)}
    if declared:
        return declared
    classes = built_ins(_CLASSES[kind]).items()
    return {
        **{_described(name, thing): first_line(thing) for name, thing in classes},
        **_plug_ins(_CLASSES[kind]),
    }


def _declared(config: Config | None, kind: str) -> dict[str, str]:
    rows = {**built_in_names()[kind]}
    if kind != "pipelines":
        declarations = getattr(config, kind).ready if config else {}
        rows |= {name: _ROWS[kind](declared) for name, declared in declarations.items()}
    elif config and config.pipelines.ready:  # built-in pipelines may extend the user's
        rows = {p.name: _row(p) for p in chain.from_iterable(config.pipelines.values())}
    return {name: row["description"] + _OFFLINE * _is_offline(row) for name, row in rows.items()}


def names_table() -> dict[str, dict[str, dict[str, JSON]]]:
    """Returns the table of built-in names: the file and the row of `list`, by section and name."""
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
    return {"description": purpose_of(point), "models": _models(point)}


def purpose_of(point: PipelineSpec) -> str:
    """Returns the description of a pipeline, or the names of its tasks."""
    return point.description or (f"For {', '.join(point.tasks)}" if point.tasks else "")


def _columns_and_rows(suite: Suite) -> str:
    parts = [f"columns: {', '.join(suite.columns)}", f"rows: {', '.join(suite.rows) or 'none'}"]
    return "; ".join(filter(None, [suite.description, *parts]))


_ROWS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "pipelines": lambda points: _row(points[0]),
    "tasks": lambda task: {"description": first_line(task.spec.cls)},
    "suites": lambda s: {"description": _columns_and_rows(s), "tasks": [*s.tasks]},
}


def _models(pipeline: PipelineSpec) -> list[str] | None:
    """Returns a pipeline's models; None if it calls a server, or needs a trained model."""
    from leporello.config.parameters import parameters

    models: list[str] = []
    for spec in pipeline.all_specs():
        values = spec.arguments()
        for name, parameter in parameters(spec.cls).items():
            value = values[name]
            if marked(parameter.annotation, SECRET_MARK):  # only servers need keys
                return None
            if not marked(parameter.annotation, MODEL_MARK) or value == "words":
                continue
            if not isinstance(value, str):
                return None
            models.append(value)
    return models


def _is_offline(row: Mapping[str, Any]) -> bool:
    models = row.get("models")
    try:
        return models is not None and all(Path(locate(model)).exists() for model in models)
    except UserError:
        return False


def _plug_ins(kind: Kind) -> dict[str, str]:
    """Returns the classes of installed packages, each with its package, or with an error."""
    listed: dict[str, str] = {}
    for name, points in plug_ins().get(kind.group, {}).items():
        source = f" (from {' and '.join(map(origin, points))})"
        try:
            cls = find_class(name, kind, Path())
            listed[_described(name, cls)] = first_line(cls) + source
        except UserError as error:
            # A broken package must not hide the classes of the others.
            listed[name] = f"cannot be loaded: {str(error).partition(chr(10))[0]}{source}"
    return listed


def _described(name: str, thing: object) -> str:
    from leporello.config.parameters import parameters

    all_parameters = parameters(thing).values() if isinstance(thing, type) else ()
    listed = ", ".join(str(p) for p in all_parameters if not callable(p.default) or p.required)
    return f"{name}({listed})" if listed or name[:1].isupper() else name


def first_line(thing: object) -> str:
    """Returns the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


if __name__ == "__main__":
    print(json.dumps(names_table(), indent=1, ensure_ascii=False))  # noqa: T201 -- its output
