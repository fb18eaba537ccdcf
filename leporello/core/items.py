"""Answers made of items: how a combiner returns them, each with the passages that support it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from leporello.core.records import JSON, Span


@dataclass(frozen=True, slots=True)
class Item:
    """One thing of which an answer is made.

    Attributes:
        text: Name of the item as it was first called.
        passages: Spans of the passages that it was read in, in document order.
    """

    text: str
    passages: tuple[Span, ...]


def with_items(answer: str, items: Iterable[Item]) -> JSON:
    """Returns what a combiner returns: `answer` is scored, `items` are shown with it."""
    listed: list[JSON] = [
        {"text": item.text, "passages": [[span.start, span.end] for span in item.passages]}
        for item in items
    ]
    return {"answer": answer, "items": listed}


def items_of(raw: JSON) -> tuple[Item, ...] | None:
    """Returns the items of what a combiner returned; None if that is of another form."""
    listed = raw.get("items") if isinstance(raw, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return tuple(map(_item, listed))
    except (TypeError, ValueError):  # a plug-in's own, which only looks alike
        return None


def _item(entry: JSON) -> Item:
    match entry:
        case {"text": str(text), "passages": [*pairs]}:
            return Item(text, tuple(map(_span, pairs)))
    raise TypeError(entry)


def _span(pair: object) -> Span:
    match pair:
        case [int(start), int(end)]:
            return Span(start, end)
    raise TypeError(pair)
