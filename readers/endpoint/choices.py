"""An answer in the model's own words, matched to a choice by its text or its letter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase

_LETTER = re.compile(r"\W*([A-Z])\W*")
_LETTER_FIRST = re.compile(r"\W*([A-Z])\s*[).:\]*]")  # `(B) a cat`, `B: a cat`; not `A cat`
_LETTER_NAMED = re.compile(r"(?i:answer|choice|option)\s*+(?:(?i:is)|:)?+\W*+([A-Z])\b(?!['’])")
_LETTER_ANYWHERE = re.compile(r"\(([A-Z])\)")


def chosen(answers: Sequence[str], choices: Sequence[str]) -> str | None:
    """Returns the choice that most answers name, the first of them in a tie; None if none does."""
    named = [index for answer in answers if (index := _named_choice(answer, choices)) is not None]
    return choices[Counter(named).most_common(1)[0][0]] if named else None


def _named_choice(answer: str, choices: Sequence[str]) -> int | None:
    """Returns which choice an answer names: by its text or by the letter that the prompt gave it.

    From the plainest way to say it to the least plain; each way counts only if it names one.
    """
    texts = [_plain(choice) for choice in choices]
    words = _plain(answer)
    first = answer.strip().partition("\n")[0]
    readings = (
        [index for index, text in enumerate(texts) if text and text == words],
        _lettered(_LETTER.fullmatch(first), len(choices)),
        _lettered(_LETTER_FIRST.match(first), len(choices)),
        _longest([p for p, text in enumerate(texts) if text and _begins(words, text)], texts),
        _lettered(_LETTER_NAMED.search(answer), len(choices)),
        _longest([p for p, text in enumerate(texts) if text and _occurs(words, text)], texts),
        _anywhere(answer, len(choices)),
    )
    return next((reading[0] for reading in readings if len(reading) == 1), None)


def _plain(text: str) -> str:
    """Returns the words alone, case-folded: quotation marks, stops and emphasis do not count."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip().casefold()


def _begins(words: str, text: str) -> bool:
    return words == text or words.startswith(f"{text} ")


def _occurs(words: str, text: str) -> bool:
    return f" {text} " in f" {words} "


def _longest(indices: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Leaves out choices whose text is part of another's: `cat` beside `the black cat`."""
    return [
        index
        for index in indices
        if not any(
            texts[index] != texts[other] and _occurs(texts[other], texts[index])
            for other in indices
        )
    ]


def _lettered(match: re.Match[str] | None, count: int) -> list[int]:
    index = ascii_uppercase.index(match[1]) if match else count
    return [index] if index < count else []


def _anywhere(answer: str, count: int) -> list[int]:
    indices = {ascii_uppercase.index(letter) for letter in _LETTER_ANYWHERE.findall(answer)}
    return [index for index in indices if index < count]
