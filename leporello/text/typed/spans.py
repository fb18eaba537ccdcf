"""Where values of a type stand in passages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leporello.core.coverage import Span
from leporello.core.records import JSON, Chunk
from leporello.text.sentences import sentence_spans
from leporello.text.typed.parse import as_answer, found_in, kind_of, parse
from leporello.text.typed.values import dates, numbers

_SENTENCES = 10  # around spans, in which a value is looked for


class TypedSpan(NamedTuple):
    """A value in a passage, by whose span it was found.

    Attributes:
        rank: Place of that span among those that were given.
        passage: Index of the passage.
        start: First character in the passage.
        end: One past the last.
        value: Value that stands there.
    """

    rank: int
    passage: int
    start: int
    end: int
    value: JSON


def best_typed(
    schema: str, spans: Iterable[tuple[int, int, int]], texts: Sequence[str]
) -> TypedSpan | None:
    """Returns the value of a type that the best span has, else the sentence of the best span.

    Args:
        schema: JSON Schema of the value.
        spans: Spans as (passage, start, end), the best first.
        texts: Passages.
    """
    known = [*spans]
    for rank, (passage, start, end) in enumerate(known):
        if found := _within(schema, texts[passage], start, end):
            return TypedSpan(rank, passage, *found)
    if kind_of(json.loads(schema)) in ("text", "list"):
        return None
    for rank, (passage, start, end) in enumerate(known[:_SENTENCES]):
        for first, last in sentence_spans(texts[passage]):
            if first <= start < last and (
                found := _within(schema, texts[passage], first, max(last, end))
            ):
                return TypedSpan(rank, passage, *found)
    return None


def _within(schema: str, text: str, start: int, end: int) -> tuple[int, int, JSON] | None:
    """Returns the value that a stretch of a text says, else the first that stands in it."""
    part = text[start:end]
    found = next(found_in(part, schema), None)
    if found is not None:
        return start + found.start, start + found.end, found.value
    try:
        return start, end, parse(part, schema)
    except ValueError:
        return None


def located(value: JSON, passages: Sequence[Chunk]) -> Span | None:
    """Returns where a value stands in passages: the first place that says the same."""
    if isinstance(value, bool):
        return None
    for chunk in passages:
        text = chunk.document.text[chunk.start : chunk.end]
        if isinstance(value, str):
            at = re.search(_spelled(value), text, re.IGNORECASE) if value.strip() else None
            if at:
                return Span(chunk.start + at.start(), chunk.start + at.end())
        found = dates(text) if isinstance(value, str) else numbers(text)
        for each in found:
            if each.value == value:
                return Span(chunk.start + each.start, chunk.start + each.end)
    return None


def _spelled(value: str) -> str:
    """Returns a pattern for a text, whatever white space parts its words."""
    words = r"\s+".join(map(re.escape, as_answer(value).split()))
    return rf"(?<!\w){words}(?!\w)"
