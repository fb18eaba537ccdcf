"""Checks JSON Schemas themselves, and builds validators of values."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.errors import did_you_mean
from leporello.core.records import JSON

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """Fault of a schema: the keys that lead to it, and a description."""

    path: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.text}" if self.path else self.text


def faults_of(schema: JSON) -> list[SchemaFault]:
    """Returns why a schema is not valid JSON Schema; empty if it is valid.

    A schema that no value can match is not reported: the first answer fails its check.
    """
    from jsonschema import Draft202012Validator, FormatChecker

    if not isinstance(schema, dict):
        return [SchemaFault((), f"a JSON Schema is an object {{…}}, got {schema!r:.80}")]
    meta = Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=FormatChecker(("regex",))
    )
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

    formats = FormatChecker(("email", "ipv4", "ipv6", "uuid"))
    formats.checks("date")(_is_iso)
    return Draft202012Validator(schema, format_checker=formats, registry=Registry())


def _is_iso(value: object) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return bool(_ISO.fullmatch(value)) and bool(datetime.date.fromisoformat(value))
    except ValueError:
        return False


def resolve(root: Mapping[str, Any], reference: str) -> Any:  # noqa: ANN401 -- any JSON
    """Returns the part of a schema that `#/…` refers to.

    Raises:
        LookupError: The schema has no such part, or the reference is to another file.
    """
    if not reference.startswith("#"):
        raise LookupError(reference)
    node: Any = root
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) and name.isdecimal() else node[name]
    return node
