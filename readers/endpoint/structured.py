"""Answers of a type by the servers' own means: JSON Schema as a field of the request."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leporello.readers.endpoint.responses import Mode
from leporello.text.typed.parse import kind_of

_NAME = "answer"  # of the one field of what is sent for a type that is no object


def schema_sent(schema: str) -> str:
    """Returns the schema that a server is sent, as text; empty where any text will do.

    Services want an object at the top: another value is the one field of such.
    """
    if not schema or kind_of(json.loads(schema)) == "text":
        return ""
    known = json.loads(schema)
    if kind_of(known) == "object" and "anyOf" not in known:
        return schema
    shared = {"$defs": known.pop("$defs")} if "$defs" in known else {}
    whole = {
        **shared,
        "type": "object",
        "properties": {_NAME: {"anyOf": [known, {"type": "null"}]}},
        "required": [_NAME],
        "additionalProperties": False,
    }
    return json.dumps(whole, ensure_ascii=False)


def form_of(schema: str, mode: Mode) -> Mapping[str, Any]:
    """Returns the fields of a request that hold the answer to a schema; plain text has none.

    `strict` is said only where the schema is as OpenAI's strict mode wants it; it refuses others.
    """
    if not schema or mode == "completions":
        return {}
    known = json.loads(schema)
    if mode == "messages":
        return {"output_config": {"format": {"type": "json_schema", "schema": known}}}
    told = {"name": _NAME, "schema": known, "strict": _is_strict(known)}
    return {"response_format": {"type": "json_schema", "json_schema": told}}


def unwrapped(text: str, schema: str) -> str:
    """Returns an answer without the object that was asked for around it."""
    if not schema or schema_sent(schema) in ("", schema):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a server that knows no schemas, or an answer cut off
        return text
    if not isinstance(value, dict) or [*value] != [_NAME]:
        return text
    inner = value[_NAME]
    return inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)


def _is_strict(schema: Any) -> bool:  # noqa: ANN401 -- any JSON
    """Says whether all objects of a schema have all their fields, and no others."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if "properties" in schema and isinstance(schema["properties"], dict):
        whole = {*schema.get("required", ())} == {*schema["properties"]}
        if not whole or schema.get("additionalProperties") is not False:
            return False
    return all(map(_is_strict, schema.values()))
