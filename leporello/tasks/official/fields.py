"""Reads and checks fields of benchmarks' rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leporello.tasks.jsonl.schema import RowError


def text_of(row: Mapping[str, Any], name: str) -> str:
    """Returns a field that must be text.

    Raises:
        RowError: The field is missing, or has another type.
    """
    if not isinstance(value := _field(row, name), str):
        raise RowError([f"field {name!r} must be text, got {json.dumps(value):.60}"])
    return value


def _field(row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 -- any JSON
    if name not in row:
        raise RowError([f"field {name!r} is missing; the row has {', '.join(row) or 'none'}"])
    return row[name]


def outputs(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the gold answers of a row; empty if the benchmark does not publish them.

    Raises:
        RowError: The field is neither text, nor a list of texts, nor null, nor missing.
    """
    value = row.get("output")
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in listed):
        raise RowError([f"field 'output' must be text, got {json.dumps(value):.60}"])
    return tuple(listed)


def texts_of(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Returns a field that must be a list of texts; null counts as empty.

    Raises:
        RowError: The field is missing, or has another type.
    """
    value = [] if _field(row, name) is None else row[name]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RowError([f"field {name!r} must be a list of texts, got {value!r:.60}"])
    return tuple(value)


def one_of(row: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """Returns a field that must have an allowed value.

    Raises:
        RowError: The field is missing, or has another value.
    """
    if (value := row.get(name)) not in allowed:
        raise RowError([f"field {name!r} must be one of {', '.join(allowed)}, got {value!r:.60}"])
    return str(value)
