"""JSON Schema of pipelines.yaml, for completion, validation and hover help in editors."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from pydantic import PydanticInvalidForJsonSchema

from leporello.config.parameters import adapter, members, nested_kind, parameters, takes_list
from leporello.config.placement import Placement
from leporello.config.specs import Spec
from leporello.config.suites import Suite, SuiteColumn, SuiteRow, SuiteSubmission
from leporello.core.annotations import docstring
from leporello.core.calls.budget import Budget
from leporello.core.environment.classes import ClassError, built_ins, find_class, plug_ins
from leporello.core.protocols import KINDS, LOADER, METRIC, TASK, Kind, MetricEntry
from leporello.core.records import JSON
from leporello.core.training import Training
from leporello.core.yaml.tree import read_tree

_KINDS = (*KINDS.values(), LOADER, TASK, METRIC)
_SETTINGS: Mapping[str, type] = {"budget": Budget, "train": Training, "placement": Placement}


def schema() -> dict[str, JSON]:
    """Returns the schema; the parameters of plug-ins in files are not checked."""
    tree: Any = read_tree(Path(__file__).with_name("schema.yaml")).plain()
    sections = tree["properties"]
    for key, cls in _SETTINGS.items():
        sections["pipelines"]["additionalProperties"]["properties"][key] |= _settings(cls)
    sections["suites"]["additionalProperties"] = _suite()
    values: dict[Any, tuple[str, JSON]] = {}
    tree["$defs"] |= {kind.key: _kind(kind, values) for kind in _KINDS}
    tree["$defs"] |= dict(values.values())
    return {**tree}


def _definition(name: str) -> dict[str, JSON]:
    return {"$ref": f"#/$defs/{name}"}


def _described(description: str, value: Any) -> dict[str, JSON]:  # noqa: ANN401 -- a JSON object
    return {"description": description, **value}


def _closed(**properties: JSON) -> dict[str, JSON]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _settings(cls: type, *without: str) -> JSON:
    included = {name: p for name, p in parameters(cls).items() if name not in without}
    values = {name: adapter(p.annotation).json_schema() for name, p in included.items()}
    return _closed(**_properties(cls, values))


def _suite() -> JSON:
    inner: Mapping[str, tuple[type, bool]] = {
        "columns": (SuiteColumn, True),
        "rows": (SuiteRow, True),
        "submission": (SuiteSubmission, False),
    }
    suite: Any = _settings(Suite, "name", "tree", *inner)
    for key, (cls, is_mapping) in inner.items():
        value = _settings(cls)
        value = {"type": "object", "additionalProperties": value} if is_mapping else value
        suite["properties"][key] = _described(parameters(Suite)[key].description, value)
    return {**suite}


def _kind(kind: Kind, values: dict[Any, tuple[str, JSON]]) -> JSON:
    # Plug-ins of installed packages too, so that editors complete their parameters.
    classes = dict(built_ins(kind))
    for plug_in_name in plug_ins().get(kind.group, ()):
        with suppress(ClassError):  # reported by `list`
            classes[plug_in_name] = find_class(plug_in_name, kind, Path())
    metrics: JSON = {"type": "array", "items": _definition("metric")}
    text = "Metrics in place of the task's own"
    extra = {"metrics": _described(text, metrics)} if kind == TASK else {}
    built_in = [_class(name, cls, values, extra) for name, cls in classes.items()]
    names = {"anyOf": [{"enum": [*classes]}, _definition("path")]}
    bare: JSON = _described("A class with its defaults", names)
    merged = [_definition("merged")] if kind.key in KINDS else []
    return {"anyOf": [*built_in, _definition("plug_in"), bare, *merged]}


def _class(
    name: str, cls: type, values: dict[Any, tuple[str, JSON]], extra: Mapping[str, JSON]
) -> JSON:
    # From docstrings: before, 2 of 715 properties had a description (decision 42).
    text = " ".join(docstring(cls)[0].partition("\n\n")[0].split())
    values_of = {p.name: _reference(p.annotation, values) for p in parameters(cls).values()}
    required: list[JSON] = ["class"]
    mapping = _closed(
        **{"class": _described(text, {"const": name}), **extra, **_properties(cls, values_of)}
    )
    return {**mapping, "description": text, "required": required}


def _properties(cls: type, values: Mapping[str, Any]) -> dict[str, JSON]:
    # Defaults that YAML cannot express are left out, since editors insert them as text.
    defaults = Spec(cls.__name__, cls, {}).resolved()
    return {
        name: _described(
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
    """Returns a reference to a type in `values`; without them the schema is four times as long."""
    if annotation not in values:
        values[annotation] = f"value{len(values)}", _value(annotation)
    return _definition(values[annotation][0])


def _value(annotation: Any) -> dict[str, JSON]:  # noqa: ANN401 -- a type
    kind = nested_kind(annotation)
    if kind is not None:
        stage = _definition(kind.key)
        value: Any = {"type": "array", "items": stage} if takes_list(annotation) else stage
    elif MetricEntry in get_args(annotation):
        value = {"type": "array", "items": _definition("metric")}
    elif takes_list(annotation) is None:
        value = {}
    else:
        try:
            value = adapter(annotation).json_schema()
        except PydanticInvalidForJsonSchema:  # a function, which YAML cannot contain
            value = {}
    items: JSON = {"type": "array", "items": value, "minItems": 1}
    sweep: JSON = _described("Values, each a point of a sweep", items)
    swept: list[JSON] = [{"type": "object", "properties": {"sweep": sweep}, "required": ["sweep"]}]
    if takes_list(annotation) is False:
        swept.append(items)
    if {int, float} & {*members(annotation)}:
        swept.append(_definition("range"))
    return {"anyOf": [value, *swept]}
