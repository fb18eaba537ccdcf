"""Locates values of a type in passages."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from leporello.core.coverage import Span
from leporello.core.records import JSON, Chunk
from leporello.text.sentences import sentence_spans
from leporello.text.typed.parse import as_answer, kind_of, parse, values_in
from leporello.text.typed.values import dates, numbers

_SENTENCES = 10  # best spans whose sentences are searched for a value


class TypedSpan(NamedTuple):
    """A value in a passage, and the span in which it was found."""

    rank: int  # rank of that span
    passage: int  # index of the passage
    start: int  # first character in the passage
    end: int  # one past the last
    value: JSON  # value of these characters


def best_typed(
    schema: str, spans: Iterable[tuple[int, int, int]], texts: Sequence[str]
) -> TypedSpan | None:
    """Returns the value in the best (passage, start, end) that has one, or in a span's sentence."""
    ranked = [*spans]
    for rank, (passage, start, end) in enumerate(ranked):
        if typed := _within(schema, texts[passage], start, end):
            return TypedSpan(rank, passage, *typed)
    if kind_of(json.loads(schema)) in ("text", "list"):
        return None
    for rank, (passage, start, end) in enumerate(ranked[:_SENTENCES]):
        for first, last in sentence_spans(texts[passage]):
            if first <= start < last and (
                typed := _within(schema, texts[passage], first, max(last, end))
            ):
                return TypedSpan(rank, passage, *typed)
    return None


def _within(schema: str, text: str, start: int, end: int) -> tuple[int, int, JSON] | None:
    """Returns the first value in a span of a text, otherwise the value that the span states."""
    part = text[start:end]
    first = next(values_in(part, schema), None)
    if first is not None:
        return start + first.start, start + first.end, first.value
    try:
        return start, end, parse(part, schema)
    except ValueError:
        return None


def located(value: JSON, passages: Sequence[Chunk]) -> Span | None:
    """Returns the first span in the passages that has a certain value."""
    # `yes` is not a part of the text, and its first occurrence would be chance.
    if isinstance(value, bool):
        return None
    for chunk in passages:
        text = chunk.document.text[chunk.start : chunk.end]
        if isinstance(value, str):
            words = r"\s+".join(map(re.escape, as_answer(value).split()))  # over line breaks too
            if words and (match := re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE)):
                return Span(chunk.start + match.start(), chunk.start + match.end())
        candidates = dates(text) if isinstance(value, str) else numbers(text)
        for candidate in candidates:
            if candidate.value == value:
                return Span(chunk.start + candidate.start, chunk.start + candidate.end)
    return None
