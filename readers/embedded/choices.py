"""Choice among options, by answers in the passages and by typical traits of right options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.models.weights import ModelFolder, unpack
from leporello.readers.embedded.spans import Candidate, Decision, SpanHead, softmax, summed
from leporello.text.tokens import terms

_READ = 3  # passages in which answers are read, for the comparison with options
_SPANS = 10  # spans that options are compared with
_MIN_F1 = 0.3  # similarity of an option and a span that is not by chance

Floats = NDArray[np.float64]


TRAITS = ("joined", "echoed", "absolute", "hedged", "numeric", "central")

_LETTERED = re.compile(r"^[ \t]*\(?([A-Z])[).:][ \t]+", re.MULTILINE)
_LETTER = re.compile(r"\W*([A-Z])\W*")
_JOINED = re.compile(r",|\band\b")
_ABSOLUTE = re.compile(
    r"\b(?:all|only|always|every|everyone|never|completely|entirely|any)\b", re.I
)
_HEDGED = re.compile(r"\b(?:may|might|some|could|both|seem\w*|probably|likely)\b", re.I)
_NUMERIC = re.compile(r"\d")
_FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """a about after an and are as at be been before being but by can could did do does for from
        had has have he her his him how i if in into is it its my no not of on or our out over she
        should so than that the their them then there they this to up was we were what when where
        which who whom why will with would you your""",
    )
)


class ChoiceRanker:
    """Chooses among options, by weights that the recipe `choices` wrote."""

    def __init__(self, path: Path, head: SpanHead) -> None:
        self._weights = unpack(ModelFolder(path).checked("weights.safetensors"))["weights"]
        self._head = head

    def choose(self, question: str, choices: Sequence[str], passages: Sequence[str]) -> Decision:
        """Returns a decision for a question with options, which may be letters, and passages.

        Its place is the answer in the passages that is most similar to the likeliest option.
        """
        rows, spans = features(self._head, *lettered_options(question, choices), passages)
        probabilities = softmax(rows @ self._weights)
        return Decision(probabilities, spans[probabilities.index(max(probabilities))])


def features(
    head: SpanHead, question: str, options: Sequence[str], passages: Sequence[str]
) -> tuple[Floats, list[Candidate | None]]:
    """Returns the options' features (traits, similarity to answers), and their nearest answers."""
    scores = head.read_nearest(question, passages, _READ)
    numbers = [*scores]
    spans = summed([*scores.values()])[:_SPANS]
    agreements = [_agreement(option, spans) for option in options]
    rows = np.array(traits(question, options)).reshape(len(options), -1)
    column = np.maximum(np.array([share for share, _ in agreements]) - _MIN_F1, 0.0)
    places = [span and replace(span, passage=numbers[span.passage]) for _, span in agreements]
    return np.column_stack([rows, column]), places


def _agreement(option: str, spans: Sequence[Candidate]) -> tuple[float, Candidate | None]:
    """Returns the F1 of an option with spans, weighted by their odds, and the most similar span."""
    if not spans:
        return 0.0, None
    words = option_terms(option)
    sets = [option_terms(span.text) for span in spans]
    f1 = np.array([2 * len(words & s) / max(len(words) + len(s), 1) for s in sets])
    odds = np.array([span.score for span in spans])
    best = int(f1.argmax())
    share = float(f1 @ np.exp(odds - np.logaddexp.reduce(odds)))
    return share, spans[best] if f1[best] >= _MIN_F1 else None


def traits(question: str, options: Sequence[str]) -> list[list[float]]:
    """Returns the traits of options, with a row per option and a column per trait of `TRAITS`.

    The traits are: whether an option joins several things, the share of its terms that the question
    has, whether it has absolute words, hedges or numbers, and its similarity to the other options.
    """
    question_terms = option_terms(question)
    sets = [option_terms(option) for option in options]
    return [
        [
            float(bool(_JOINED.search(option))),
            len(words & question_terms) / max(len(words), 1),
            float(bool(_ABSOLUTE.search(option))),
            float(bool(_HEDGED.search(option))),
            float(bool(_NUMERIC.search(option))),
            sum(_similarity(words, others) for j, others in enumerate(sets) if j != i)
            / max(len(sets) - 1, 1),
        ]
        for i, (option, words) in enumerate(zip(options, sets, strict=True))
    ]


def option_terms(text: str) -> frozenset[str]:
    """Returns the stems of a text's terms, without function words if there are others."""
    words = frozenset(terms(text))
    return frozenset(map(_stem, words - _FUNCTION_WORDS or words))


def _stem(term: str) -> str:
    for end in ("ing", "ed", "es", "ly", "s"):
        if term.endswith(end) and len(term) >= len(end) + 3:
            return term.removesuffix(end)
    return term


def _similarity(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / max(len(left | right), 1)


def lettered_options(question: str, choices: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the question without options, and the text of each choice, which may be a letter."""
    letters = [_LETTER.fullmatch(choice) for choice in choices]
    if not choices or not all(letters):
        # An option may have a letter at its beginning, such as in `(A) text`.
        return question, tuple(_LETTERED.sub("", choice, count=1) for choice in choices)
    marks = list(_LETTERED.finditer(question))
    ends = [*(mark.start() for mark in marks[1:]), len(question)]
    texts = {
        mark[1]: question[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)
    }
    if not all(letter and letter[1] in texts for letter in letters):
        return question, tuple(choices)
    return question[: marks[0].start()].strip(), tuple(texts[m[1]] for m in letters if m)
