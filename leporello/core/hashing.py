"""Hashes of JSON values, and the differences between two values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def digest(value: JSON) -> str:
    """Returns a short hash of a JSON value."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def differences(old: Any, new: Any) -> Iterator[str]:  # noqa: ANN401 -- any JSON
    """Yields each field in which two values differ: `reader.model: 'a' -> 'b'`."""
    return (f"{path}: {a!r} -> {b!r}" for path, a, b in differing_fields(old, new))


def differing_fields(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 -- any JSON
    """Yields path, old value and new value of each field in which two values differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{path}.{Path(key).name if '/' in key else key}" if path else str(key)
            yield from differing_fields(old.get(key), new.get(key), inner)
    elif old != new:
        yield path, old, new
