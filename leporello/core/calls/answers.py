"""Values that combiners return: the text that is scored, its probability, items and steps."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from json import dumps  # by name: a stage may replace functions of modules
from operator import index
from typing import Literal

from leporello.core.calls.contracts import check_size
from leporello.core.records import JSON, Output, Span

_DIGITS = 6  # decimals of scores; later decimals differ between machines
_WAY = "way"
Certainty = Literal["sure", "likely", "unsure"]
_SURE = 0.85
_LIKELY = 0.5
_NO_ANSWER = re.compile(
    r"\W*(?:(?:the|this) question )?(?:is )?"
    r"(?:unanswerable|not answerable|cannot be answered|can not be answered|can't be answered)"
    r"(?: (?:from|based on|given|using|with) (?:the )?(?:given |provided )?(?:information )?"
    r"(?:(?:in|from) )?(?:the )?"
    r"(?:article|context|document|paper|paragraphs?|passages?|text)?)?\W*",
    re.IGNORECASE,
)


def rounded(score: float) -> float:
    """Rounds a score to the precision in which scores are written and compared."""
    return round(float(score), _DIGITS)


def as_text(value: JSON) -> str:
    """Returns the text that is scored: the value itself, the text of its key `answer`, or JSON."""
    if isinstance(value, dict) and isinstance(answer := value.get("answer"), str):
        value = answer
    if isinstance(value, str):
        check_size(value, "the answer")
        return value.strip()
    try:
        return "" if value is None else dumps(value, ensure_ascii=False, allow_nan=False)
    except TypeError:
        raise TypeError(
            f"a combiner must return text or another JSON value, got {value!r:.200}"
            + ("; did you mean its .text?" if isinstance(value, Output) else "")
        ) from None


def confidence_of(value: JSON, outputs: Iterable[Output]) -> float | None:
    """Returns the probability that an answer is correct: the highest among equal outputs.

    A combiner can set it by returning a mapping with `answer` and `confidence`, which may be None.
    """
    if isinstance(value, dict) and "answer" in value and "confidence" in value:
        confidence = value["confidence"]
        return rounded(confidence) if isinstance(confidence, float) else None
    text = as_text(value)
    # An output with another text may be more probable, but its probability is about that text.
    equal = (output for output in outputs if output.text.strip() == text)
    return max((o.probability for o in equal if o.probability is not None), default=None)


def is_answer(text: str) -> bool:
    """Returns whether a text answers: it is neither empty nor a statement that nothing answers."""
    return bool(text) and not _NO_ANSWER.fullmatch(text)


def certainty(probability: float) -> Certainty:
    """Returns the word for a probability: `sure` from 85 % on, `likely` from 50 % on."""
    if probability >= _SURE:
        return "sure"
    return "likely" if probability >= _LIKELY else "unsure"


def with_more(value: JSON, /, **more: JSON) -> dict[str, JSON]:
    """Returns an answer as a mapping with additional keys; keeps those of other combiners."""
    inner = value if isinstance(value, dict) and isinstance(value.get("answer"), str) else {}
    return {**inner, "answer": as_text(value), **more}


def with_way(value: JSON, step: str) -> dict[str, JSON]:
    """Returns an answer with this step added before the steps of nested combiners."""
    return {**with_more(value), _WAY: [step, *way_of(value)]}


def way_of(value: JSON) -> tuple[str, ...]:
    """Returns the steps that led to an answer, the outermost first: `step 2 of 3`."""
    way = value.get(_WAY) if isinstance(value, dict) else None
    return tuple(step for step in way if isinstance(step, str)) if isinstance(way, list) else ()


@dataclass(frozen=True, slots=True)
class Item:
    """One item of an answer that is a list."""

    text: str  # the item as it is first spelt
    passages: tuple[Span, ...]  # spans of the passages that mention it, in document order


def with_items(answer: str, items: Iterable[Item]) -> JSON:
    """Returns a combiner's result: `answer` is scored, `items` are shown with it."""
    listed: list[JSON] = [
        {"text": item.text, "passages": [[span.start, span.end] for span in item.passages]}
        for item in items
    ]
    return {"answer": answer, "items": listed}


def items_of(raw: JSON) -> tuple[Item, ...] | None:
    """Returns the items of a combiner's result; None if it has another form."""
    listed = raw.get("items") if isinstance(raw, dict) else None
    if not isinstance(listed, list):
        return None
    try:
        return tuple(map(_item, listed))
    except (TypeError, ValueError):  # a plug-in may use the key `items` for something else
        return None


def _item(entry: JSON) -> Item:
    match entry:
        case {"text": str(text), "passages": [*pairs]}:
            # `index` refuses what is not an integer.
            return Item(text, tuple(Span(*map(index, pair)) for pair in pairs))  # type: ignore[arg-type]
    raise TypeError(entry)
