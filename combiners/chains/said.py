"""What an output says: the words that bear it out, whether it says anything, how sure it is."""

from __future__ import annotations

import math

from leporello.combiners.lists.parse import items
from leporello.core.records import Document, Example, Output
from leporello.text.english.questions import Wanted, wanted
from leporello.text.sentences import sentence_spans
from leporello.text.squad import normalise

_AROUND = 1000  # characters on either side of an answer that its sentence is sought in


def evidence(output: Output, document: Document) -> str:
    """Returns the sentences that a reader copied its answer from; its text, if it wrote it.

    A name that was copied says little to whoever reads on; the sentence that has it does.
    """
    if output.span is None:
        return output.text.strip()
    first = max(output.span.start - _AROUND, 0)
    text = document.text[first : output.span.end + _AROUND]
    start, end = output.span.start - first, output.span.end - first
    bounds = [(a, b) for a, b in sentence_spans(text) if a < end and start < b]
    return text[bounds[0][0] : bounds[-1][1]].strip() if bounds else output.text.strip()


def says_nothing(text: str) -> bool:
    """Says whether a text is blank or no more than a word for nothing: `none`, `unanswerable`."""
    return not items(text)


def answer_key(text: str) -> str:
    """Returns what answers are compared by: SQuAD's form, or of the article `A` the letter."""
    return normalise(text) or text.strip().casefold()


def confidence(score: float | None) -> float:
    """Returns a score between 0 and 1, its order kept; 0.5 where there is none.

    Readers' scores are log odds, mean log-probabilities or similarities, so this is no probability.
    """
    return 0.5 if score is None else 0.5 * (1 + math.tanh(score / 2))


def asks_shortly(example: Example) -> bool:
    """Says whether an example wants a few words: no summary, and nothing to choose from."""
    asked = wanted(example.question, example.instruction)
    return bool(example.question) and not example.choices and asked is Wanted.SHORT
