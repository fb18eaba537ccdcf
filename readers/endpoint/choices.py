"""Matching of free-text answers to choices, by their text or letter."""

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
    """Returns the choice that most answers name, the first one in a tie; None without a match."""
    indices = [index for answer in answers if (index := _named_choice(answer, choices)) is not None]
    return choices[Counter(indices).most_common(1)[0][0]] if indices else None


def _named_choice(answer: str, choices: Sequence[str]) -> int | None:
    """Returns the choice that an answer names, by its text or by its letter in the prompt.

    Tries readings from the clearest to the least clear; a reading counts only if it is unique.
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
    # Unclear answers abstain: a guess would be an answer the model did not give (decision 22).
    return next((reading[0] for reading in readings if len(reading) == 1), None)


def _plain(text: str) -> str:
    """Returns the case-folded words, without quotation marks, punctuation and emphasis."""
    return " ".join(re.findall(r"\w+", text.casefold())) or text.strip().casefold()


def _begins(words: str, text: str) -> bool:
    return words == text or words.startswith(f"{text} ")


def _occurs(words: str, text: str) -> bool:
    return f" {text} " in f" {words} "


def _longest(indices: Sequence[int], texts: Sequence[str]) -> list[int]:
    """Removes choices whose text is part of another's, such as `cat` of `the black cat`."""
    return [
        index
        for index in indices
        if not any(
            texts[index] != texts[longer] and _occurs(texts[longer], texts[index])
            for longer in indices
        )
    ]


def _lettered(match: re.Match[str] | None, count: int) -> list[int]:
    index = ascii_uppercase.index(match[1]) if match else count
    return [index] if index < count else []


def _anywhere(answer: str, count: int) -> list[int]:
    indices = {ascii_uppercase.index(letter) for letter in _LETTER_ANYWHERE.findall(answer)}
    return [index for index in indices if index < count]
