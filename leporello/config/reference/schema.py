"""The JSON Schema of pipelines.yaml, for editors that complete, check and explain as one types."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from pydantic import PydanticInvalidForJsonSchema

from leporello.config.parameters import (
    adapter,
    members,
    nested_kind,
    parameters,
    takes_list,
)
from leporello.config.placement import Placement
from leporello.config.specs import Spec
from leporello.config.suites import Suite, SuiteColumn, SuiteRow, SuiteSubmission
from leporello.core.annotations import docstring
from leporello.core.calls.budget import Budget
from leporello.core.environment.classes import ClassError, built_ins, find_class, plug_ins
from leporello.core.protocols import KINDS, LOADER, METRIC, TASK, Kind, MetricEntry
from leporello.core.records import JSON
from leporello.core.training import Training

_KINDS = (*KINDS.values(), LOADER, TASK, METRIC)
_TEXT: JSON = {"type": "string"}
_TEXTS: JSON = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_STAGES = {
    "chunker": "Divides a document into chunks; `Whole` if left out",
    "enricher": "Makes passages of the chunks: summaries, chunks with context; nothing if left out",
    "retriever": "Selects chunks for a question; `All` if left out",
    "reader": "Answers from what was selected",
    "combiner": "Makes one answer of what the reader says; `Stuff` if left out",
}


def schema() -> dict[str, JSON]:
    """Returns the schema; classes of the user's own are allowed with any parameters."""
    default = _closed(
        pipeline=_told("Pipeline that runs where none is named", _TEXT),
        task=_told("Task that it runs on where none is named", _TEXT),
        pipelines=_named("Pipelines of tasks that ask for another one, by task", _TEXT),
    )
    stages = {key: _told(text, {"$ref": f"#/$defs/{key}"}) for key, text in _STAGES.items()}
    pipeline = _closed(
        **stages,
        readers=_named(
            "Readers by role: `answer` is the reader, `select`, say, what a stage's `role` names",
            {"$ref": "#/$defs/reader"},
        ),
        extends=_told("Pipeline of which this one has all that it does not say itself", _TEXT),
        model=_told("What reads in place of the reader's model, by name", _TEXT),
        description=_told("Line about it for `list`", _TEXT),
        tuned=_told("How it came to be chosen, as `tune` writes it", {"type": "object"}),
        tasks=_told("Tasks that it runs on where none is named", _TEXTS),
        normalised=_told(
            "Whether answers are brought into the form that the task's metrics read",
            {"type": "boolean", "default": False},
        ),
        abstain=_told(
            "Confidence below which an answer is withheld: the document does not say so",
            {"type": "number", "minimum": 0, "maximum": 1},
        ),
        budget=_told("Limits of what one question may cost", _settings(Budget)),
        train=_told("How `train` trains the reader", _settings(Training)),
        placement=_told("Where a run works; no result depends on it", _settings(Placement)),
    )
    top = _closed(
        default=_told(
            "What runs where nothing is named", {**default, "required": ["pipeline", "task"]}
        ),
        pipelines=_named("Pipelines by name", pipeline),
        tasks=_named("Tasks by name", {"$ref": "#/$defs/task"}),
        collections=_named(
            "Files, folders or patterns by the name of the collection that they make", _TEXTS
        ),
        suites=_named("Papers' tables by name", _suite()),
    )
    values: dict[Any, tuple[str, JSON]] = {}
    kinds = {kind.key: _kind(kind, values) for kind in _KINDS}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Leporello pipelines",
        **top,
        "$defs": {**kinds, **dict(values.values())},
    }


def _told(description: str, value: Any) -> dict[str, JSON]:  # noqa: ANN401 -- a JSON object
    return {"description": description, **value}


def _named(description: str, value: JSON) -> dict[str, JSON]:
    """Returns the schema of a mapping from any names."""
    return {"description": description, "type": "object", "additionalProperties": value}


def _closed(**properties: JSON) -> dict[str, JSON]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _range() -> JSON:
    numbers = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}
    log = _told("Whether by their logarithms", {"type": "boolean"})
    found = {**_closed(range=_told("The two", numbers), log=log), "required": ["range"]}
    return _told("Lowest and highest number that `tune` tries", found)


def _settings(cls: type, *without: str) -> JSON:
    known = {name: p for name, p in parameters(cls).items() if name not in without}
    values = {name: adapter(p.annotation).json_schema() for name, p in known.items()}
    return _closed(**_properties(cls, values))


def _suite() -> JSON:
    inner: Mapping[str, tuple[type, bool]] = {
        "columns": (SuiteColumn, True),
        "rows": (SuiteRow, True),
        "submission": (SuiteSubmission, False),
    }
    suite: Any = _settings(Suite, "name", "tree", *inner)
    suite["properties"]["split"] = _told("Name of the split where a column says none", _TEXT)
    for key, (cls, named) in inner.items():
        text, own = parameters(Suite)[key].description, _settings(cls)
        suite["properties"][key] = _named(text, own) if named else _told(text, own)
    return {**suite}


def _kind(kind: Kind, values: dict[Any, tuple[str, JSON]]) -> JSON:
    found = dict(built_ins(kind))
    for other in plug_ins().get(kind.group, ()):
        with suppress(ClassError):  # `list` tells it
            found[other] = find_class(other, kind, Path())
    built_in = [_class(name, cls, values) for name, cls in found.items()]
    own: JSON = {"type": "string", "pattern": r"[.:]"}
    bare: JSON = _told("A class with its defaults", {"anyOf": [{"enum": [*found]}, own]})
    name = "Class of your own, as ./file.py:Class or package.module.Class"
    plug_in: JSON = {
        "type": "object",
        "description": "A class of your own, with its parameters",
        "properties": {"class": _told(name, own)},
        "required": ["class"],
    }
    merged: JSON = {
        "type": "object",
        "description": "Parameters merged into those of the pipeline that this one extends",
        "not": {"required": ["class"]},
    }
    return {"anyOf": [*built_in, plug_in, bare, *([merged] if kind.key in KINDS else [])]}


def _class(name: str, cls: type, values: dict[Any, tuple[str, JSON]]) -> JSON:
    text = " ".join(docstring(cls)[0].partition("\n\n")[0].split())
    given = {p.name: _reference(p.annotation, values) for p in parameters(cls).values()}
    required: list[JSON] = ["class"]
    found = _closed(**{"class": _told(text, {"const": name}), **_properties(cls, given)})
    return {**found, "description": text, "required": required}


def _properties(cls: type, values: Mapping[str, Any]) -> dict[str, JSON]:
    """Returns what a parameter may be, with its description and default, by name."""
    defaults = Spec(cls.__name__, cls, {}).resolved()
    return {
        name: _told(
            parameter.description,
            {**values[name], **({"default": defaults[name]} if name in defaults else {})},
        )
        for name, parameter in parameters(cls).items()
        if name in values
    }


def _reference(
    annotation: Any,  # noqa: ANN401 -- a type
    values: dict[Any, tuple[str, JSON]],
) -> dict[str, JSON]:
    """Returns a reference to the definition of a type's values, which it adds to `values`.

    Most parameters have one of a hundred types: without definitions the schema is four times as
    long.
    """
    if annotation not in values:
        values[annotation] = f"value{len(values)}", _value(annotation)
    return {"$ref": f"#/$defs/{values[annotation][0]}"}


def _value(annotation: Any) -> dict[str, JSON]:  # noqa: ANN401 -- a type
    kind = nested_kind(annotation)
    if kind is not None:
        stage: Any = {"$ref": f"#/$defs/{kind.key}"}
        value: Any = {"type": "array", "items": stage} if takes_list(annotation) else stage
    elif MetricEntry in get_args(annotation):
        value = {"type": "array", "items": {"$ref": "#/$defs/metric"}}
    elif takes_list(annotation) is None:
        value = {}
    else:
        try:
            value = adapter(annotation).json_schema()
        except PydanticInvalidForJsonSchema:  # a function, which no file can give
            value = {}
    items: JSON = {"type": "array", "items": value, "minItems": 1}
    sweep: JSON = _told("Values, each a point of a sweep", items)
    swept: list[JSON] = [{"type": "object", "properties": {"sweep": sweep}, "required": ["sweep"]}]
    if takes_list(annotation) is False:
        swept.append(items)
    if {int, float} & {*members(annotation)}:
        swept.append(_range())
    return {"anyOf": [value, *swept]}
