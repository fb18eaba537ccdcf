"""Converts answers to the form that a benchmark's metric reads, without looking at references.

Each function keeps the meaning that the metric would read; an answer that the metric cannot read
is rewritten if its meaning is clear, and is returned unchanged otherwise. The functions are
idempotent.
"""

import json
import re
from collections.abc import Iterator, Sequence

from leporello.core.calls.answers import is_answer
from leporello.text.squad import normalise

# As the metrics of ZeroSCROLLS search for them. Their `\d+\.?\d*%` finds the same, but in cubic
# time: a model that repeats a digit endlessly would block the run.
LETTER = re.compile(r"\b[A-D]\b")
PERCENTAGE = re.compile(r"(?<!\d)\d++(?:\.\d*+)?%")

_LETTERS = "ABCD"
_BARE = re.compile(
    r"\W*(?:(?:the )?(?:correct |best )?(?:answer|option|choice)(?: is)?\W*)?([A-D])\W*",
    re.IGNORECASE,
)
_MARKED = re.compile(r"\W*([A-D])[).:]+\s+\S", re.IGNORECASE)

_PER_CENT = re.compile(
    r"(?<!\d)(\d++(?:\.\d++)?)\s*(?:%|\N{FULLWIDTH PERCENT SIGN}|per ?cent\b)", re.I
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")

_NO_ID = re.compile(r"[^0-9\s,]")
_ENTRY = re.compile(
    r"^[^\w\n]*[0-9]++ *[.):] *(?:summary *)?([0-9]++)[^\w\n]*$", re.IGNORECASE | re.MULTILINE
)
_RUN = re.compile(r"(?<![0-9])[0-9]++(?:[^\w.]++[0-9]++)+")


def option_letter(text: str, choices: Sequence[str]) -> str:
    """Returns the letter of the option that an answer names."""
    single = _BARE.fullmatch(text)
    # Only a capital: `a` is more likely an article.
    if single and single[1].isupper():
        return single[1]
    # Word for word, even if it begins with an article that the metric would read as the letter A.
    if (index := _option(text, choices)) is not None:
        return _LETTERS[index]
    if letter := LETTER.search(text):
        return letter.group()
    marked = single or _MARKED.match(text)
    return marked[1].upper() if marked else text


def option_text(text: str, choices: Sequence[str]) -> str:
    """Replaces the letter of an option by its text; returns all other answers unchanged."""
    if not choices or _option(text, choices) is not None:
        return text
    marked = _BARE.fullmatch(text) or _MARKED.match(text)
    return choices[_LETTERS.index(marked[1].upper())] if marked else text


def label(text: str, labels: Sequence[str]) -> str:
    """Returns the only label that an answer names; either half of `Villain/Antagonist` suffices."""
    if (index := _option(text, labels)) is not None:
        return labels[index]
    mentioned = [candidate for candidate in labels if _names(text, candidate)]
    # Two labels may be a comparison, so the metric must count the answer as wrong.
    return mentioned[0] if len(mentioned) == 1 else text


def percentage(text: str) -> str:
    """Returns the first percentage of an answer, or its only number if that is a percentage."""
    if match := PERCENTAGE.search(text):
        return match.group()
    if worded := _PER_CENT.search(text):
        return f"{worded[1]}%"
    numbers = _NUMBER.findall(text)
    # With several numbers, nobody knows the right one. `0.6` can be a share, so it is unchanged.
    only = numbers[0] if len(numbers) == 1 else ""
    return f"{only}%" if only and (float(only) == 0 or 1 <= float(only) <= 100) else text  # noqa: PLR2004 -- per cent


def ids(text: str) -> list[str]:
    """Returns the ids of an order as the metric reads them, ignoring all other text."""
    words = _NO_ID.sub("", text).replace(",", " ").split()
    return [_number(word) for word in words]


def permutation(text: str, count: int) -> str:
    """Returns an answer's order of the ids 1 to `count`, as `3, 1, 2`; without one, the text."""
    ids = {str(number) for number in range(1, count + 1)}
    for order in _orders(text):
        if order and len(order) == count and set(order) == ids:
            return ", ".join(order)
    return text


def authors(text: str) -> str:
    """Returns the authors of paragraphs in a list of JSON or of numbers, as `[1, 1, 2]`."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]  # a document of one paragraph
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    if not isinstance(value, list) or not value:  # an object as in PAN's files has more fields
        return text
    words = [str(item).strip() for item in value]
    if not all(word.isascii() and word.isdecimal() for word in words):
        return text
    return f"[{', '.join(map(_number, words))}]"


def unanswerable(text: str, word: str) -> str:
    """Returns the benchmark's word if a text only states that the question has no answer."""
    return word if text and not is_answer(text) else text


def _option(text: str, options: Sequence[str]) -> int | None:
    """Returns the index of the only option that is equal to the normalised answer."""
    normal = normalise(text)
    matches = [index for index, option in enumerate(options) if normalise(option) == normal]
    return matches[0] if len(matches) == 1 and text.strip() else None


def _names(text: str, label: str) -> bool:
    words = "|".join(map(re.escape, label.split("/")))
    # `not a hero` names the label, but means the other one.
    negated = r"(?<!\bnot )(?<!\bnot a )(?<!\bnot an )(?<!\bnot the )(?<!\bno )"
    return bool(re.search(rf"{negated}\b(?:{words})\b", text, re.IGNORECASE))


def _orders(text: str) -> Iterator[list[str]]:
    """Yields possible orders in a text: the metric's reading, then a list, then runs of numbers."""
    # The metric's own reading first, so that an answer it can read is never changed.
    yield ids(text)
    yield [_number(entry) for entry in _ENTRY.findall(text)]
    # The last run first, since models repeat the given order before they answer.
    for run in reversed(_RUN.findall(text)):
        yield [_number(word) for word in re.findall("[0-9]+", run)]
    yield [_number(word) for word in re.findall("[0-9]+", text)]


def _number(digits: str) -> str:
    """Strips leading zeros; returns text, since the digits may be too many for `int`."""
    return digits.lstrip("0") or "0"
