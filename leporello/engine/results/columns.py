"""Packs rows with the same fields into columns, which store constants and sequences once.

A document of 250 paragraphs has 31,000 pairs of paragraphs, and a store has a row for each pair,
so bytes per row matter. The result is plain JSON; a column is one of

    [3, 1, 4]                                  the values
    {"=": 0}                                   the same value in each row
    {"+": [[0, 1, 250], [9, 0, 4]]}            integers: first, step, count
    {"of": ["no", "yes"], "at": "0110100"}     few distinct texts: one digit per row
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leporello.core.records import JSON

_DIGITS = "0123456789"
_SEQUENCE_COST = 4  # values that one sequence of integers must replace to save space


def to_columns(values: Mapping[str, list[JSON]]) -> dict[str, JSON]:
    """Returns packed columns of values by field, one value per row."""
    return {name: _packed(column) for name, column in values.items() if column}


def from_columns(columns: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
    """Returns `count` rows from their columns.

    Raises:
        ValueError: A column does not contain `count` values.
    """
    values = {name: _unpacked(column, count) for name, column in columns.items()}
    return [{name: values[name][index] for name in values} for index in range(count)]


def _packed(values: list[JSON]) -> JSON:
    """Returns a column in the shortest of the four forms."""
    if len(values) == 1:
        return values
    if _are_equal(values):
        return {"=": values[0]}
    if numbers := [value for value in values if type(value) is int]:
        sequences = _sequences(numbers) if len(numbers) == len(values) else []
        saves = bool(sequences) and len(sequences) * _SEQUENCE_COST < len(values)
        return {"+": sequences} if saves else values
    texts = [*dict.fromkeys(value for value in values if isinstance(value, str))]
    if _are_few(texts, values) and all(isinstance(value, str) for value in values):
        digits = {text: _DIGITS[index] for index, text in enumerate(texts)}
        return {"of": [*texts], "at": "".join(digits[str(value)] for value in values)}
    return values


def _are_equal(values: Sequence[JSON]) -> bool:
    first = values[0]
    # `1 == True == 1.0` in Python, but not in JSON, and a resumed run must have the same bytes.
    if values.count(first) < len(values) or len({*map(type, values)}) > 1:
        return False
    # Equal values can have different JSON: -0.0 and 0.0, [1] and [1.0].
    return not isinstance(first, float | list | dict) or len(set(map(repr, values))) == 1


def _are_few(texts: Sequence[str], values: Sequence[JSON]) -> bool:
    return len(texts) <= len(_DIGITS) and 2 * len(texts) < len(values)


def _sequences(values: Sequence[int]) -> list[JSON]:
    """Returns (first, step, count) of the longest sequences with equal steps, in order."""
    sequences: list[JSON] = []
    start, last = 0, len(values) - 1
    while start <= last:
        step = values[start + 1] - values[start] if start < last else 0
        end = start
        while end < last and values[end + 1] - values[end] == step:
            end += 1
        sequences.append([values[start], step, end + 1 - start])
        start = end + 1
    return sequences


def _unpacked(column: Any, count: int) -> Sequence[Any]:  # noqa: ANN401 -- JSON
    values: Sequence[Any] = column
    if isinstance(column, dict):
        if "=" in column:
            return [column["="]] * count
        if "+" in column:
            values = [first + step * n for first, step, size in column["+"] for n in range(size)]
        else:
            values = [column["of"][int(digit)] for digit in column["at"]]
    if len(values) != count:
        raise ValueError(f"a column has {len(values)} values instead of {count}")
    return values
