"""Properties of outputs: supporting sentence, comparison key, confidence, votes, emptiness."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from leporello.combiners.lists.parse import items
from leporello.core.records import Document, Output
from leporello.text.log_odds import logistic
from leporello.text.sentences import sentence_spans
from leporello.text.squad import normalise

_Answer = TypeVar("_Answer")
_AROUND = 1000  # characters before and after an answer within which its sentence is searched


def evidence(output: Output, document: Document) -> str:
    """Returns the sentences that contain a copied answer, or the text of a generated answer.

    Later reads need the sentence, because a copied name alone has too little information.
    """
    if output.span is None:
        return output.text.strip()
    first = max(output.span.start - _AROUND, 0)
    text = document.text[first : output.span.end + _AROUND]
    start, end = output.span.start - first, output.span.end - first
    bounds = [(a, b) for a, b in sentence_spans(text) if a < end and start < b]
    return text[bounds[0][0] : bounds[-1][1]].strip() if bounds else output.text.strip()


def has_no_answer(text: str) -> bool:
    """Returns whether a text is blank, or only a word such as `none` or `unanswerable`."""
    return not items(text)


def answer_key(text: str) -> str:
    """Returns the comparison key of an answer: SQuAD's form, or the letter of the article `A`."""
    return normalise(text) or text.strip().casefold()


def most_trusted(answers: Iterable[tuple[str, _Answer, float]]) -> _Answer:
    """Returns the answer with the greatest sum of weights over equal answers, by their keys.

    `answers` are keys, answers and weights. The first of equal answers, or of equal sums, counts.
    """
    sums: dict[str, float] = defaultdict(float)
    first: dict[str, _Answer] = {}
    for key, answer, weight in answers:
        sums[key] += weight
        first.setdefault(key, answer)
    return first[max(sums, key=sums.__getitem__)]


def confidence(score: float | None) -> float:
    """Returns a number from 0 to 1 that rises with a score, not a probability; 0.5 without it."""
    return 0.5 if score is None else logistic(score)
