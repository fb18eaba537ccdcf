"""JSON Schema: what is wrong with a schema itself, and what checks values by it."""

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
    """One thing wrong with a schema: the keys that lead to it, and what it is."""

    path: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{'.'.join(self.path)}: {self.text}" if self.path else self.text


def faults_of(schema: JSON) -> list[SchemaFault]:
    """Returns why a schema is not JSON Schema; nothing if it is.

    A schema that no value fits is not found here: the first answer that is checked fails.
    """
    from jsonschema import Draft202012Validator, FormatChecker

    if not isinstance(schema, dict):
        return [SchemaFault((), f"a JSON Schema is an object {{…}}, got {schema!r:.80}")]
    meta = Draft202012Validator(
        Draft202012Validator.META_SCHEMA, format_checker=FormatChecker(("regex",))
    )
    wrong = sorted(meta.iter_errors(schema), key=str)
    if wrong:
        return [SchemaFault(tuple(map(str, e.absolute_path)), _message(e)) for e in wrong]
    return [*_lost_references(schema, schema, ())]


def _message(error: Any) -> str:  # noqa: ANN401 -- jsonschema's own
    key = [*error.absolute_path][-1:]
    if key == ["type"] and isinstance(error.instance, str):
        return f"there is no type {error.instance!r}{did_you_mean(error.instance, _TYPES)}"
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
                text = f"there is no {inner!r} in this schema, and others are not looked for"
                yield SchemaFault(below, text)
        elif key not in ("enum", "const"):
            yield from _lost_references(inner, root, below)


def validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    """Returns what checks values: formats as well, and nothing is fetched."""
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
    """Returns what `#/…` names in a schema.

    Raises:
        LookupError: There is nothing there, or it is elsewhere.
    """
    if not reference.startswith("#"):
        raise LookupError(reference)
    node: Any = root
    for part in filter(None, reference[1:].split("/")):
        name = part.replace("~1", "/").replace("~0", "~")
        node = node[int(name)] if isinstance(node, list) and name.isdecimal() else node[name]
    return node
