"""Fields of the rows of the benchmarks' files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leporello.tasks.jsonl.schema import RowError


def text_of(row: Mapping[str, Any], name: str) -> str:
    """Returns a field that must be text.

    Raises:
        RowError: It is missing, or something else.
    """
    if not isinstance(value := _field(row, name), str):
        raise RowError([f"field {name!r} must be text, got {json.dumps(value):.60}"])
    return value


def _field(row: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 -- any JSON
    if name not in row:
        raise RowError([f"field {name!r} is missing; the row has {', '.join(row) or 'none'}"])
    return row[name]


def outputs(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the gold answers of a row; none where the benchmark keeps them to itself.

    Raises:
        RowError: The field is neither text, nor a list of texts, nor null, nor left out.
    """
    value = row.get("output")
    listed = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in listed):
        raise RowError([f"field 'output' must be text, got {json.dumps(value):.60}"])
    return tuple(listed)


def texts_of(row: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Returns a field that must be a list of texts; none where it is null.

    Raises:
        RowError: It is missing, or something else.
    """
    value = [] if _field(row, name) is None else row[name]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise RowError([f"field {name!r} must be a list of texts, got {value!r:.60}"])
    return tuple(value)


def one_of(row: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    """Returns a field that must be one of some words.

    Raises:
        RowError: It is missing, or none of them.
    """
    if (value := row.get(name)) not in allowed:
        raise RowError([f"field {name!r} must be one of {', '.join(allowed)}, got {value!r:.60}"])
    return str(value)
