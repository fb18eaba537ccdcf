"""The public surface: names, parameters, YAML keys, options and fields of files that users rely on.

`python tests/house/test_surface.py` writes the current surface to tests/golden/surface.json. A
name that is removed or renamed breaks users' files: keep it, or describe it in docs/upgrading.md.
"""

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from command_line import options_of, verbs

import leporello
import leporello.api
from leporello import Document, Example
from leporello.config.reference.schema import schema
from leporello.core.environment.classes import built_ins
from leporello.core.protocols import ALL_KINDS
from leporello.engine.results.finished import empty_prediction, prediction_row
from leporello.tasks.jsonl.schema import Row

FILE = Path(__file__).parents[1] / "golden" / "surface.json"
PROSE = {"description", "title", "markdownDescription"}


def test_the_public_surface_changes_only_with_its_snapshot() -> None:
    now, before = surface(), json.loads(FILE.read_text(encoding="utf-8"))
    changes = [
        f"{'removed' if key not in now else 'added' if key not in before else 'changed'}: {key}"
        for key in sorted({*now, *before})
        if now.get(key) != before.get(key)
    ]
    assert not changes, "\n".join([*changes, f"see {__name__} for what to do"])


def surface() -> dict[str, Any]:
    entries = {f"leporello.{name}": _signature(getattr(leporello, name)) for name in _NAMES}
    entries |= {f"leporello.api.{n}": _signature(getattr(leporello.api, n)) for n in _API_NAMES}
    entries |= {
        f"{kind.key} {name}": _signature(cls)
        for kind in ALL_KINDS
        for name, cls in built_ins(kind).items()
    }
    # The parameters of classes, under `$defs`, are those of the signatures above.
    yaml = {key: value for key, value in schema().items() if not key.startswith("$")}
    entries |= {f"YAML {path}": value for path, value in _leaves(_keys(yaml), "")}
    entries |= {f"leporello {name}": sorted(options_of(verb)) for name, verb in verbs()}
    entries["row of JSON Lines"] = sorted(Row.model_fields)
    row = prediction_row(empty_prediction(Example("1", Document("d", "A text."))))
    entries["row of predictions.jsonl"] = sorted(row)
    return entries


_NAMES = [name for name in leporello.__all__ if not name.startswith("_")]
_API_NAMES = leporello.api.__all__


def _signature(value: object) -> list[str]:
    """Returns the parameters or fields of a class or function, in order."""
    if dataclasses.is_dataclass(value):
        fields = [f for f in dataclasses.fields(value) if not f.name.startswith("_")]
        return [f"{field.name}: {field.type}" for field in fields]
    if not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
        return []
    return [str(p) for p in inspect.signature(value).parameters.values()]


def _keys(value: Any) -> Any:
    """Returns a JSON Schema without texts for people."""
    if isinstance(value, list):
        return [*map(_keys, value)]
    if isinstance(value, dict):
        return {k: _keys(v) for k, v in value.items() if k not in PROSE or isinstance(v, Mapping)}
    return value


def _leaves(tree: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """Yields the properties of a JSON Schema by their paths."""
    for key, value in tree.items():
        is_level = key in ("properties", "additionalProperties")
        inner = value.get("additionalProperties", value) if isinstance(value, Mapping) else value
        if isinstance(value, Mapping) and (is_level or "properties" in {*value, *(inner or ())}):
            yield from _leaves(value, path if is_level else f"{path}{key}.")
        else:
            yield f"{path}{key}", value


if __name__ == "__main__":
    lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(surface().items()))
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    sys.stdout.write(f"{FILE}: {FILE.stat().st_size:,} bytes\n")
