"""Hashes of JSON values, and the differences between two values."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from json import dumps  # by name: a stage may replace functions of modules
from pathlib import Path
from typing import Any, TypeAlias

_HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"


def digest(value: JSON) -> str:
    """Returns a short hash of a JSON value."""
    text = dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def differences(old: Any, new: Any) -> Iterator[str]:  # noqa: ANN401 -- any JSON
    """Yields each field in which two values differ: `reader.model: 'a' -> 'b'`."""
    for path, a, b in differing_fields(old, new):
        are_hashes = all(isinstance(v, str) and _HASH.fullmatch(v) for v in (a, b))
        yield f"{path}: changed" if are_hashes else f"{path}: {a!r} -> {b!r}"


def differing_fields(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 -- any JSON
    """Yields path, old value and new value of each field in which two values differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{path}.{Path(key).name if '/' in key else key}" if path else str(key)
            yield from differing_fields(old.get(key), new.get(key), inner)
    elif old != new:
        yield path, old, new
