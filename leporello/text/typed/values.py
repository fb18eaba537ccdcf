"""Numbers, dates, and yes or no in English texts."""

import datetime
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from leporello.core.environment.input_limits import real
from leporello.core.records import JSON


class FoundValue(NamedTuple):
    """A value and its characters in a text."""

    start: int
    end: int
    value: JSON


_SMALL = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14,
    "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20,
    "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}
_SHORT = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "trillion": 10**12}
_WORD = "|".join([*_SMALL, *_SCALES])
_NUMBER = re.compile(
    r"(?<![\w.,])(?P<sign>[-−+](?=[\d$€£¥]))?[$€£¥]?\s?"
    r"(?P<digits>\d{1,3}(?:(?P<sep>[,. '’\u00a0\u202f])\d{3})(?:(?P=sep)\d{3})*(?:[.,]\d+)?"
    r"(?![.,]?\d)"
    r"|\d+(?:[.,]\d+)?(?![.,]?\d))"
    r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion|mn|bn|(?-i:k|K|M))\b)?"
    rf"|(?<![\w-])(?P<words>(?:{_WORD})(?:(?:-|\s+|\s+and\s+)(?:{_WORD}))*)\b(?!-\w)",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"(?P<n>{'|'.join(_MONTHS)})[a-z]*\.?"
_YEAR, _DAY = r"(?P<y>\d{4})", r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?<![\w-]){text}(?![\w-]|[/.]\d)", re.IGNORECASE)
    for text in (
        r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})",
        rf"{_MONTH}\s*{_DAY}(?:,\s*|\s+)(?:of\s+)?{_YEAR}",
        rf"{_DAY}(?:\s+day)?(?:\s+of)?[\s-]*{_MONTH},?[\s-]*"
        rf"{_YEAR}",
        r"(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}|\d{2})",  # the American order
        r"(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})",  # the European one
    )
)
_CENTURY = 70  # two-digit years from here on are in the 20th century
_YES = re.compile(r"\W*(?:(yes|true|y)|(no|false|n))\b(?!\w)", re.IGNORECASE)


def numbers(text: str) -> Iterator[FoundValue]:
    """Yields the numbers of a text without units: digits, words, `1,200.5`, `3.5 million`."""
    for match in _NUMBER.finditer(text):
        if match["words"]:
            if match["words"].casefold() == "one" and text.strip().casefold() != "one":
                continue  # mostly a pronoun
            yield FoundValue(*match.span(), _from_words(match["words"]))
        elif (value := _from_digits(match["digits"], match["sep"])) is not None:
            scale = (match["scale"] or "").casefold()
            if not math.isfinite(value := value * (_SCALES | _SHORT).get(scale, 1)):
                continue
            start = match.end() - len(match[0].lstrip())
            sign = -1 if (match["sign"] or "+") in "-−" else 1
            is_exact = value.is_integer() and value < 2**63
            value = sign * (int(value) if is_exact else round(value, 9))
            yield FoundValue(start, match.end(), value)


def dates(text: str) -> Iterator[FoundValue]:
    """Yields the dates of a text, in order, as YYYY-MM-DD; dates without a day are skipped."""
    matches: dict[int, FoundValue] = {}
    for pattern in _DATES:
        for match in pattern.finditer(text):
            if iso := _iso(match.groupdict()):
                matches.setdefault(match.start(), FoundValue(*match.span(), iso))
    end = -1
    for start in sorted(matches):
        if start >= end:
            yield matches[start]
            end = matches[start].end


def yes_or_no(text: str) -> bool | None:
    """Returns whether a text begins with yes or no; None if with neither."""
    match = _YES.match(text)
    return None if match is None else bool(match[1])


def _from_digits(digits: str, separator: str | None) -> float | None:
    comma = digits.rfind(",")
    if separator == "." and digits.count(".") == 1 and comma < 0:
        separator = None  # `1.234` is more often a decimal point
    if separator:
        digits = digits.replace(separator, "").replace(",", ".")
    elif comma >= 0:
        digits = digits.replace(",", ".")
    try:
        return real(digits)
    except ValueError:
        return None


def _from_words(words: str) -> JSON:
    total = part = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word in _SMALL:
            part += _SMALL[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        elif word in _SCALES:
            total, part = total + max(part, 1) * _SCALES[word], 0
    return total + part


def _iso(parts: dict[str, str]) -> str:
    """Returns a date in ISO 8601; empty if the day does not exist."""
    year, month_name = int(parts["y"]), parts.get("n")
    if len(parts["y"]) == len("yy"):
        year += 1900 if year >= _CENTURY else 2000
    month = int(parts["m"]) if not month_name else 1 + _MONTHS.index(month_name[:3].lower())
    try:
        return datetime.date(year, month, int(parts["d"])).isoformat()
    except ValueError:
        return ""
