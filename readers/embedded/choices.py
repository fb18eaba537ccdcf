"""One of several options, by what passages say and by traits of right options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leporello.models.weights import ModelFolder, unpack
from leporello.readers.embedded.spans import Candidate, SpanHead, summed
from leporello.text.english.clauses import nearest
from leporello.text.tokens import terms

_READ = 3  # passages that are read for an answer to compare options with
_SPANS = 10  # spans that options are compared with
_AGREED = 0.3  # F1 with what was read below which the likeness is by chance

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
_SMALL = frozenset(
    re.findall(
        r"\w+",
        """a about after an and are as at be been before being but by can could did do does for from
        had has have he her his him how i if in into is it its my no not of on or our out over she
        should so than that the their them then there they this to up was we were what when where
        which who whom why will with would you your""",
    )
)


@dataclass(frozen=True, slots=True)
class Choice:
    """The option that was chosen.

    Attributes:
        index: Index of the option; of equal ones the first.
        probabilities: Probabilities, one an option.
        span: Answer read from the passages that is most like the option, if one is like it.
    """

    index: int
    probabilities: tuple[float, ...]
    span: Candidate | None


class ChoiceRanker:
    """Chooses among options.

    Args:
        path: Folder that the recipe `choices` wrote.
        head: Head that reads answers in passages.

    Raises:
        UserError: If a file is missing or is not what was shipped.
    """

    def __init__(self, path: Path, head: SpanHead) -> None:
        self._weights = unpack(ModelFolder(path).checked("weights.safetensors"))["weights"]
        self._head = head

    def choose(self, asked: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> list[Choice]:
        """Returns a choice for each question.

        Args:
            asked: Questions, each with one option or more and its passages. Options may be letters
                whose texts stand in the question.
        """
        parts = [(*lettered_options(q, choices), passages) for q, choices, passages in asked]
        return [_choice(rows @ self._weights, spans) for rows, spans in features(self._head, parts)]


def _choice(odds: Floats, spans: Sequence[Candidate | None]) -> Choice:
    probabilities = np.exp(odds - np.logaddexp.reduce(odds))
    index = int(probabilities.argmax())
    return Choice(index, tuple(probabilities.tolist()), spans[index])


def features(
    head: SpanHead, asked: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> list[tuple[Floats, list[Candidate | None]]]:
    """Returns what is seen of options, and the answer in the passages that each is like.

    The columns are traits of the options, then how far each agrees with what was read.

    Args:
        head: Head that reads answers in passages.
        asked: Questions with options and passages.
    """
    near = [[texts[i] for i in nearest(q, texts, _READ)] for q, _, texts in asked]
    read = iter(
        head.read([(q, t) for (q, _, _), each in zip(asked, near, strict=True) for t in each])
    )
    found = []
    for (question, options, passages), texts in zip(asked, near, strict=True):
        spans = summed(texts, [next(read) for _ in texts])[:_SPANS]
        agreed = [_agreement(option, spans) for option in options]
        rows = np.array(traits(question, options)).reshape(len(options), -1)
        column = np.maximum(np.array([share for share, _ in agreed]) - _AGREED, 0.0)
        places = [_placed(span, texts, passages) for _, span in agreed]
        found.append((np.column_stack([rows, column]), places))
    return found


def _agreement(option: str, spans: Sequence[Candidate]) -> tuple[float, Candidate | None]:
    """Returns the F1 of an option with spans, likelier ones weighing more, and the nearest span."""
    if not spans:
        return 0.0, None
    own = option_terms(option)
    sets = [option_terms(span.text) for span in spans]
    likeness = np.array([2 * len(own & s) / max(len(own) + len(s), 1) for s in sets])
    odds = np.array([span.score for span in spans])
    best = int(likeness.argmax())
    share = float(likeness @ np.exp(odds - np.logaddexp.reduce(odds)))
    return share, spans[best] if likeness[best] >= _AGREED else None


def _placed(
    span: Candidate | None, texts: Sequence[str], passages: Sequence[str]
) -> Candidate | None:
    """Returns a span with the index of its passage among all of them."""
    return span and replace(span, passage=list(passages).index(texts[span.passage]))


def traits(question: str, options: Sequence[str]) -> list[list[float]]:
    """Returns how options look, a row an option and a column a trait of `TRAITS`.

    Whether an option joins several things, which share of its terms echoes the question, whether it
    speaks in absolutes, hedges, has numbers, and how alike it is to the other options.

    Args:
        question: Question.
        options: Options.
    """
    asked = option_terms(question)
    sets = [option_terms(option) for option in options]
    return [
        [
            float(bool(_JOINED.search(option))),
            len(own & asked) / max(len(own), 1),
            float(bool(_ABSOLUTE.search(option))),
            float(bool(_HEDGED.search(option))),
            float(bool(_NUMERIC.search(option))),
            sum(_alike(own, other) for j, other in enumerate(sets) if j != i)
            / max(len(sets) - 1, 1),
        ]
        for i, (option, own) in enumerate(zip(options, sets, strict=True))
    ]


def option_terms(text: str) -> frozenset[str]:
    """Returns the terms of a text without inflections; small words only where there are no others.

    Args:
        text: Text in English; in other languages all of its terms count.
    """
    found = frozenset(terms(text))
    return frozenset(map(_stem, found - _SMALL or found))


def _stem(term: str) -> str:
    for end in ("ing", "ed", "es", "ly", "s"):
        if term.endswith(end) and len(term) >= len(end) + 3:
            return term.removesuffix(end)
    return term


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / max(len(one | other), 1)


def lettered_options(question: str, choices: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the question itself and the text of each choice.

    Where choices are letters, their texts are looked for in the question, which then ends before
    the first; what is not found stays a letter.

    Args:
        question: Question, perhaps with lines such as `(A) text`.
        choices: Choices.
    """
    letters = [_LETTER.fullmatch(choice) for choice in choices]
    if not choices or not all(letters):
        return question, tuple(map(unlettered, choices))
    marks = list(_LETTERED.finditer(question))
    ends = [*(mark.start() for mark in marks[1:]), len(question)]
    texts = {
        mark[1]: question[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)
    }
    if not all(letter and letter[1] in texts for letter in letters):
        return question, tuple(choices)
    return question[: marks[0].start()].strip(), tuple(texts[m[1]] for m in letters if m)


def unlettered(option: str) -> str:
    """Returns an option without the letter that it may begin with, such as `(A) text`.

    Args:
        option: Option.
    """
    return _LETTERED.sub("", option, count=1)
