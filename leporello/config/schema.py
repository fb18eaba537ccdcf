"""The JSON Schema of pipelines.yaml, for editors that complete and check as one types."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from leporello.config.parameters import Parameter, adapter, nested_kind, parameters, takes_list
from leporello.config.placement import Placement
from leporello.core.protocols import KINDS, LOADER, TASK, Kind
from leporello.core.records import JSON
from leporello.core.training import Training

__all__ = ["schema"]


def schema() -> dict[str, JSON]:
    """Returns the schema; classes of the user's own are allowed with any parameters."""
    kinds = (*KINDS.values(), LOADER, TASK)
    stages: dict[str, JSON] = {kind.key: {"$ref": f"#/$defs/{kind.key}"} for kind in KINDS.values()}
    text: JSON = {"type": "string"}
    texts: JSON = {"anyOf": [text, {"type": "array", "items": text}]}
    other_keys: dict[str, JSON] = {"extends": text, "description": text, "tasks": texts}
    pipeline: JSON = {
        "type": "object",
        "properties": {
            **stages,
            **other_keys,
            "train": _settings(Training, "How `train` trains the reader"),
            "placement": _settings(Placement, "Where a run works; no result depends on it"),
        },
        "additionalProperties": False,
    }
    default: JSON = {
        "type": "object",
        "properties": {
            "pipeline": text,
            "task": text,
            "pipelines": {"type": "object", "additionalProperties": text},
        },
        "required": ["pipeline", "task"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Leporello pipelines",
        "type": "object",
        "properties": {
            "default": default,
            "pipelines": {"type": "object", "additionalProperties": pipeline},
            "tasks": {"type": "object", "additionalProperties": {"$ref": "#/$defs/task"}},
            "collections": {"type": "object", "additionalProperties": texts},
        },
        "additionalProperties": False,
        "$defs": {kind.key: _kind(kind) for kind in kinds},
    }


def _settings(cls: type, description: str) -> JSON:
    settings = parameters(cls).values()
    return {
        "type": "object",
        "description": description,
        "properties": {s.name: adapter(s.annotation).json_schema() for s in settings},
        "additionalProperties": False,
    }


def _kind(kind: Kind) -> JSON:
    module = importlib.import_module(kind.package)
    classes = [getattr(module, name) for name in module.__all__]
    built_in: list[JSON] = [_class(cls) for cls in classes if _is_stage(cls, kind.methods)]
    plug_in: JSON = {
        "type": "object",
        "description": "A class of your own: file.py:Class or package.module.Class",
        "properties": {"class": {"type": "string", "pattern": r"[.:]"}},
        "required": ["class"],
    }
    merged: JSON = {
        "type": "object",
        "description": "Parameters merged into those of the pipeline that this one extends",
        "not": {"required": ["class"]},
    }
    return {"anyOf": [*built_in, plug_in, *([] if kind in (LOADER, TASK) else [merged])]}


def _is_stage(cls: object, methods: Sequence[str]) -> bool:
    return isinstance(cls, type) and all(callable(getattr(cls, name, None)) for name in methods)


def _class(cls: type) -> JSON:
    cls_parameters = parameters(cls)
    properties: dict[str, JSON] = {name: _parameter(p) for name, p in cls_parameters.items()}
    return {
        "type": "object",
        "description": (cls.__doc__ or "").partition("\n")[0],
        "properties": {"class": {"const": cls.__name__}, **properties},
        "required": ["class"],
        "additionalProperties": False,
    }


def _parameter(parameter: Parameter) -> JSON:
    kind = nested_kind(parameter.annotation)
    if kind is not None:
        stage: Any = {"$ref": f"#/$defs/{kind.key}"}
        value: Any = (
            {"type": "array", "items": stage} if takes_list(parameter.annotation) else stage
        )
    elif takes_list(parameter.annotation) is None:
        value = {}
    else:
        value = adapter(parameter.annotation).json_schema()
    items: JSON = {"type": "array", "items": value, "minItems": 1}
    swept: list[JSON] = [{"type": "object", "properties": {"sweep": items}, "required": ["sweep"]}]
    if takes_list(parameter.annotation) is False:
        swept.append(items)
    return {"anyOf": [value, *swept]}
