"""Values that combiners return: text that is scored, probability, items, and the way it came."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from leporello.core.calls.contracts import check_size
from leporello.core.records import JSON, Output, Span

_DIGITS = 6  # of scores: what lies beyond differs between machines
_WAY = "way"


def rounded(score: float) -> float:
    """Rounds a score as it is written and compared."""
    return round(float(score), _DIGITS)


def as_text(value: JSON) -> str:
    """Returns what is scored: a text, the `answer` of a mapping that has such a text, or JSON.

    Raises:
        TypeError: It is something that JSON does not hold.
        StageError: It is longer than any answer.
    """
    if isinstance(value, dict) and isinstance(answer := value.get("answer"), str):
        value = answer
    if isinstance(value, str):
        check_size(value, "the answer")
        return value.strip()
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise TypeError(
            f"a combiner must return text or another JSON value, got {value!r:.200}"
            + ("; did you mean its .text?" if isinstance(value, Output) else "")
        ) from None


def confidence_of(value: JSON, outputs: Iterable[Output]) -> float | None:
    """Returns the probability that an answer is right: the highest of the outputs that say it.

    A combiner that knows better returns a mapping with `answer` and `confidence`, which may be
    None.
    """
    if isinstance(value, dict) and "answer" in value and "confidence" in value:
        own = value["confidence"]
        return rounded(own) if isinstance(own, float) else None
    text = as_text(value)
    said = (o.probability for o in outputs if o.probability is not None and o.text.strip() == text)
    return max(said, default=None)


def with_more(value: JSON, /, **more: JSON) -> dict[str, JSON]:
    """Returns an answer with more beside it, what another combiner put there kept."""
    inner = value if isinstance(value, dict) and isinstance(value.get("answer"), str) else {}
    return {**inner, "answer": as_text(value), **more}


def with_way(value: JSON, step: str) -> dict[str, JSON]:
    """Returns an answer with the way that it came: this step, then those within it."""
    return {**with_more(value), _WAY: [step, *way_of(value)]}


def way_of(value: JSON) -> tuple[str, ...]:
    """Returns the way that an answer came, the outermost choice first: `step 2 of 3`."""
    way = value.get(_WAY) if isinstance(value, dict) else None
    return tuple(step for step in way if isinstance(step, str)) if isinstance(way, list) else ()


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
