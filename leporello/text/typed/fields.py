"""Fields of an object, for readers that answer one question at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from leporello.core.records import JSON
from leporello.text.typed.parse import kind_of, without_null

_DEEPEST = 5  # objects within objects
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\W]+")


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A field of an object, or of an object within it.

    Attributes:
        pointer: JSON Pointer of the field.
        question: Question that asks for the field: its description, or its name in words.
        schema: JSON Schema of its value, as text.
        nullable: Whether it may be null.
    """

    pointer: str
    question: str
    schema: str
    nullable: bool


@lru_cache(maxsize=256)
def fields_of(schema: str) -> tuple[AnswerField, ...]:
    """Returns the innermost fields of an object; empty if the type is not an object."""
    root = json.loads(schema)
    return (*_fields(root, root, "", 0),) if kind_of(root) == "object" else ()


def _fields(
    schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str, depth: int
) -> Iterator[AnswerField]:
    for name, inner in without_null(schema, root).get("properties", {}).items():
        field_pointer = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
        if kind_of(inner, root) == "object" and depth < _DEEPEST:
            yield from _fields(inner, root, field_pointer, depth + 1)
            continue
        plain = without_null(inner, root)
        shared = {"$defs": root["$defs"]} if "$defs" in root else {}
        question = inner.get("description") or plain.get("description") or in_words(name)
        text = json.dumps({**shared, **plain}, ensure_ascii=False)
        yield AnswerField(field_pointer, question, text, plain is not inner and "$ref" not in inner)


def in_words(name: str) -> str:
    """Returns a field's name in words: `governing_law` becomes `governing law`."""
    return " ".join(word.lower() if word.istitle() else word for word in _WORDS.split(name) if word)


def filled(fields: Sequence[AnswerField], values: Sequence[JSON]) -> JSON:
    """Returns the object with these values; None if all of them are null.

    A null value of a field that may not be null is left out.
    """
    if all(value is None for value in values):
        return None
    root: dict[str, Any] = {}
    for field, value in zip(fields, values, strict=True):
        *above, name = [
            p.replace("~1", "/").replace("~0", "~") for p in field.pointer[1:].split("/")
        ]
        node = root
        for part in above:
            node = node.setdefault(part, {})
        if value is not None or field.nullable:
            node[name] = value
    return root
