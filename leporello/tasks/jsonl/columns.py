"""Renames the columns of a table, or the fields of a row, to the fields of `Row`."""

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
    """Raises ValueError if `columns` has a key that is not a field of a row."""
    for field in columns:
        if field not in Row.model_fields:
            raise ValueError(
                f"columns: unknown field {field!r}{did_you_mean(field, Row.model_fields)}"
            )


def renamed(fields: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """Returns a row with the names of fields, without missing values.

    Where a field requires it, numbers become text, a single text becomes a list, and the paragraphs
    of a document become one text.

    Args:
        fields: Row of a table.
        columns: Columns by field; `answers.text` is a path within objects and lists of objects.
            Empty if the columns have the names of fields.

    Raises:
        RowError: The row does not have a column.
    """
    values = {field: _at(fields, path) for field, path in columns.items()} if columns else fields
    return {field: _fit(field, value) for field, value in values.items() if value is not None}


def _at(fields: Mapping[str, Any], path: str) -> Any:  # noqa: ANN401 -- any JSON
    # The name of a column may itself contain a dot.
    if path in fields:
        return fields[path]
    value: Any = fields
    for name in path.split("."):
        value = _values_of(value, name, path)
    return value


def _values_of(value: Any, name: str, path: str) -> Any:  # noqa: ANN401 -- any JSON
    if isinstance(value, list):
        values = [_values_of(item, name, path) for item in value]
        return [v for item in values for v in (item if isinstance(item, list) else [item])]
    if isinstance(value, Mapping):
        if name in value:
            return value[name]
        raise RowError([f"has no column {path!r}{did_you_mean(name, [*value])}"])
    if value is None:
        return None
    raise RowError([f"column {path!r}: a {type(value).__name__} has no {name!r}"])


def _fit(field: str, value: Any) -> Any:  # noqa: ANN401 -- any JSON
    if field == "document" and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return "\n\n".join(value)
    if field in _TEXTS:
        return _text(value)
    if field in _LISTS and not isinstance(value, list):
        value = [value]
    return [_text(item) for item in value if item is not None] if field in _LISTS else value


def _text(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    # Ids and answers are often numbers in tables, and fields of rows are texts.
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
