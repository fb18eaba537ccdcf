"""Converts the type of an answer, as users write it, to JSON Schema, and checks schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from leporello.core.errors import did_you_mean
from leporello.core.records import JSON

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Fault of a schema: the keys that lead to it, and a description."""

    path: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.text}" if self.path else self.text


def faults_of(schema: JSON) -> list[SchemaFault]:
    """Returns why a schema is not valid JSON Schema; empty if it is valid."""
    from jsonschema import Draft202012Validator, FormatChecker

    if not isinstance(schema, dict):
        return [SchemaFault((), f"a JSON Schema is an object {{…}}, got {schema!r:.80}")]
    meta_schema, formats = Draft202012Validator.META_SCHEMA, FormatChecker(("regex",))
    meta = Draft202012Validator(meta_schema, format_checker=formats)
    errors = sorted(meta.iter_errors(schema), key=str)
    if errors:
        return [SchemaFault(tuple(map(str, e.absolute_path)), _message(e)) for e in errors]
    return [*_lost_references(schema, schema, ())]


def _message(error: Any) -> str:  # noqa: ANN401 -- jsonschema's error
    key = [*error.absolute_path][-1:]
    if key == ["type"] and isinstance(error.instance, str):
        return f"unknown type {error.instance!r}{did_you_mean(error.instance, _TYPES)}"
    if error.validator == "format":
        return f"is not a regular expression: {error.cause}"
    return f"{error.message:.300}"


def _lost_references(
    node: Any,  # noqa: ANN401 -- any JSON
    root: Mapping[str, Any],
    path: tuple[str, ...],
) -> Iterator[SchemaFault]:
    if not isinstance(node, (dict, list)):
        return
    for key, inner in node.items() if isinstance(node, dict) else enumerate(node):
        below = (*path, str(key))
        if key == "$ref" and isinstance(inner, str):
            try:
                resolve(root, inner)
            except (LookupError, TypeError):
                text = f"this schema has no {inner!r}; references to other files do not work"
                yield SchemaFault(below, text)
        elif key not in ("enum", "const"):
            yield from _lost_references(inner, root, below)


def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Returns a validator of values that also checks formats, and fetches no remote schemas."""
    from jsonschema import Draft202012Validator, FormatChecker
    from referencing import Registry

    formats = FormatChecker(("date", "email", "ipv4", "ipv6", "uuid"))
    return Draft202012Validator(schema, format_checker=formats, registry=Registry())


def resolve(root: Mapping[str, Any], reference: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the part of a schema that `#/…` names; raises LookupError if the part is missing."""
    if not reference.startswith("#"):
        raise LookupError(reference)
    node: Any = root
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) and name.isdecimal() else node[name]
    return node


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "text": ("minLength", "maxLength", "pattern"),
    "number": _BOUNDS,
    "integer": _BOUNDS,
    "date": (),
    "enum": ("choices",),
    "list": ("items", "minItems", "maxItems", "uniqueItems"),
    "yes_no": (),
    "object": ("fields", "schema"),
}
_PLAIN: Mapping[str, dict[str, JSON]] = {
    "text": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "date": {"type": "string", "format": "date"},
    "yes_no": {"type": "boolean"},
}


class AnswerTypeError(ValueError):
    """Raised for an invalid answer type, with its `faults`."""

    def __init__(self, faults: Sequence[SchemaFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(map(str, faults)))


def schema_of(answer: JSON) -> str:
    """Returns a type, such as `date` or `{schema: ...}`, as JSON Schema; empty without a type.

    Raises AnswerTypeError if the type is unknown, or the schema is not JSON Schema.
    """
    return "" if answer is None else _schema_of(json.dumps(answer, default=str))


@lru_cache(maxsize=256)
def _schema_of(answer: str) -> str:
    schema = _typed(json.loads(answer), ())
    if faults := faults_of(schema):
        raise AnswerTypeError(faults)
    return json.dumps(schema, ensure_ascii=False)


def json_schema(value: JSON) -> dict[str, Any]:
    """Returns the JSON Schema of a file's value: a schema, a type, or fields by name.

    Raises AnswerTypeError if the value has none of these forms, or is not valid.
    """
    schema_keys = ("$schema", "properties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const")
    is_schema = isinstance(value, dict) and (
        any(key in value for key in schema_keys)
        or value.get("type") in ("string", "boolean", "array", "null")
        or isinstance(value.get("type"), list)
    )
    schema: dict[str, Any] = json.loads(schema_of({"schema": value} if is_schema else value))
    return schema


def _typed(answer: JSON, path: tuple[str, ...]) -> JSON:
    if isinstance(answer, str):
        answer = {"type": answer}
    if not isinstance(answer, dict):
        raise _fault(path, f"a type is a name or a mapping with `type`, got {answer!r:.80}")
    if "schema" in answer and answer.get("type", "object") == "object":
        _check_keys(answer, ("schema",), path)
        return answer["schema"]
    implied = "object" if "fields" in answer else "enum" if "choices" in answer else "text"
    name = answer.get("type", implied)
    if not isinstance(name, str) or name not in _KEYS:
        raise _fault(path, f"unknown type {name!r}{did_you_mean(str(name), _KEYS)}")
    _check_keys(answer, _KEYS[name], path)
    described: dict[str, JSON] = {"description": d} if (d := answer.get("description")) else {}
    options = {key: answer[key] for key in _KEYS[name] if key in answer}
    if name in _PLAIN:
        return {**_PLAIN[name], **options, **described}
    if name == "enum":
        return {"enum": _choices(answer, path), **described}
    if name == "list":
        items = _typed(answer.get("items", "text"), (*path, "items"))
        return {"type": "array", **options, "items": items, **described}
    return {**_object(answer, path), **described}


def _choices(answer: Mapping[str, JSON], path: tuple[str, ...]) -> JSON:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices:
        raise _fault((*path, "choices"), "an enum needs `choices`, a list with at least one value")
    return [choice if isinstance(choice, str) else json.dumps(choice) for choice in choices]


def _object(answer: Mapping[str, JSON], path: tuple[str, ...]) -> dict[str, JSON]:
    """Returns the schema of an object with all its fields; fields not in a document are null."""
    fields = answer.get("fields")
    if not isinstance(fields, dict) or not fields:
        raise _fault((*path, "fields"), "an object needs `fields`, types by name, or `schema`")
    properties: dict[str, JSON] = {}
    faults: list[SchemaFault] = []
    for name, field in fields.items():
        if not name.strip():
            raise _fault((*path, "fields"), "a field needs a name")
        try:
            schema = _typed(field, (*path, "fields", name))
        except AnswerTypeError as error:
            faults += error.faults
            continue
        description = schema.get("description") if isinstance(schema, dict) else None
        described: dict[str, JSON] = {"description": description} if description else {}
        properties[name] = {"anyOf": [schema, {"type": "null"}], **described}
    if faults:
        raise AnswerTypeError(faults)
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _check_keys(answer: Mapping[str, JSON], allowed: Sequence[str], path: tuple[str, ...]) -> None:
    for key in answer:
        if key not in (every := ("type", "description", *allowed)):
            raise _fault((*path, key), f"a type has no key {key!r}{did_you_mean(key, every)}")


def _fault(path: tuple[str, ...], text: str) -> AnswerTypeError:
    return AnswerTypeError([SchemaFault(path, text)])
