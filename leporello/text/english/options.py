"""What the options of a question look like beside each other, whatever the text says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leporello.text.tokens import terms

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


def traits(question: str, options: Sequence[str]) -> list[list[float]]:
    """Returns how options look, a row an option and a column a trait of `TRAITS`.

    Whether an option joins several things, which share of its terms echoes the question, whether it
    speaks in absolutes, hedges, has numbers, and how alike it is to the other options.
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
    """Returns an option without the letter that it may begin with, such as `(A) text`."""
    return _LETTERED.sub("", option, count=1)
