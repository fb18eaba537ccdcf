"""Rows with other names: which column of a table, or field of a row, is which of our fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leporello.core.errors import did_you_mean
from leporello.tasks.jsonl.schema import Row, RowError

_TEXTS = {
    "id", "document", "document_path", "document_id", "collection", "question", "title", "group",
}  # fmt: skip
_LISTS = {"references", "choices", "evidence"}


def check_columns(columns: Mapping[str, str]) -> None:
    """Raises ValueError where a name on the left is no field of a row."""
    for field in columns:
        if field not in Row.model_fields:
            raise ValueError(
                f"columns: there is no field {field!r}{did_you_mean(field, Row.model_fields)}"
            )


def renamed(fields: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns a row under our names, values that are empty left out.

    Numbers are taken for texts, one text for a list of it, and a document's paragraphs for their
    text, where these are wanted.

    Args:
        fields: Row of a table.
        columns: Columns by field: `answers.text` reaches into objects, and into each of a list of
            them. Empty if the columns have our names already.

    Raises:
        RowError: A column that the row does not have.
    """
    found = {field: _at(fields, path) for field, path in columns.items()} if columns else fields
    return {field: _fit(field, value) for field, value in found.items() if value is not None}


def _at(fields: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 -- any JSON
    if path in fields:
        return fields[path]
    value: Any = fields
    for name in path.split("."):
        value = _inside(value, name, path)
    return value


def _inside(value: Any, name: str, path: str) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, list):
        found = [_inside(item, name, path) for item in value]
        return [one for item in found for one in (item if isinstance(item, list) else [item])]
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise RowError([f"has no column {path!r}{did_you_mean(name, [*value])}"])
    if value is None:
        return None
    raise RowError([f"column {path!r}: there is no {name!r} in a {type(value).__name__}"])


def _fit(field: str, value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if field == "document" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n\n".join(value)
    if field in _TEXTS:
        return _text(value)
    if field in _LISTS and not isinstance(value, list):
        value = [value]
    return [_text(item) for item in value if item is not None] if field in _LISTS else value


def _text(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
