"""Parses lists that models write, and compares their items."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import regex

# "- ", "* ", "1. ", "2) ", "(3) ", "a) " at the beginning of a line.
# Up to three digits, so that a year at the start of a line stays part of the item.
_MARK = regex.compile(r"\s*(?:[-*+•‣·–—▪◦]+\s+|\(?\d{1,3}[.)]\s+|\(?\p{L}\)\s+)")
_NUMBERED = re.compile(r"(?:^|\s)\(?(\d{1,3})[.)]\s+")
# Chat models fence lists as code although the prompt asks for lines.
_FENCE = re.compile(r"\s*```\w*\s*")
# Only before white space: `1,000` and `a;b` are single items.
_SEMICOLON = re.compile(r"(?:(?<!\s)\s++)?+(?:;\s|；)\s*+")
_COMMA = re.compile(r"(?:(?<!\s)\s++)?+(?:[,،]\s|[、，])\s*+")
_LAST = re.compile(r"^(?:and|or|&)\s+|(?<!\s)\s++(?:and|or|&)\s++", re.IGNORECASE)
_OUTER = " \t\r\n.,;:!?\"'“”„‘’«»*_`"
_ARTICLES = frozenset(("a", "an", "the"))
_NOTHING = frozenset((
    "", "none", "nothing", "nobody", "no one", "none found", "none given", "none mentioned",
    "none stated", "none of them", "na", "n a", "nil", "null", "empty", "unknown", "unanswerable",
    "not mentioned", "not given", "not stated", "not specified", "not applicable", "not available",
))  # fmt: skip
# Models write many forms of `none`; taken as items, they would be counted.
_DENIAL = re.compile(
    r"no (?:\w+ ){0,2}(?:items?|answers?|names?|matches|mentions?|results?|information)\b"
    r"|there (?:is|are|was|were) (?:no|none|not any|nothing)\b"
    r"|(?:this |the )?(?:passage|text|document|excerpt)s? "
    r"(?:does|do|did|gives?|names?|mentions?|contains?|lists?|says?) (?:not|no|none|nothing)\b"
)

# "The ships named are: …"
_OPENING = re.compile(
    r"^(?=[^:,;]*\b(?:are|is|includes?|named|mentioned|following|list(?:ed)?|items?|answers?|text"
    r"|passage)\b)[^:,;]*+:\s+",
    re.IGNORECASE,
)
# Dashes become blanks, and other punctuation is removed, except within numbers and where it
# distinguishes items, as C from C# and 5 from 5%.
_DASH = regex.compile(r"\p{Pd}(?!\d)|(?<=[^\d\s])\p{Pd}")
_DROPPED = regex.compile(r"(?:(?<!\d)[\p{P}--[#%&@\p{Pd}]]|[\p{P}--[#%&@\p{Pd}]](?!\d))", regex.V1)


def items(text: str) -> list[str]:
    """Returns the items of a list that a model wrote; empty for answers such as `none`.

    A list has lines with bullets, numbers or neither, which are not separated further, since
    `Paris, France` is one item; or one line with numbers, or with semicolons or commas before white
    space. Fences of code are left out.
    """
    lines = [line for line in text.splitlines() if line.strip() and not _FENCE.fullmatch(line)]
    # An introduction needs lines after it; alone, `Ships:` may be the answer.
    if len(lines) > 1:
        lines = [line for line in lines if not line.rstrip().endswith((":", "："))]
    parts = [*_of_one_line(lines[0])] if len(lines) == 1 else lines
    bare = (_bare(part) for part in parts)
    return [part for part in bare if part and not _denies(part)]


def _of_one_line(line: str) -> Iterator[str]:
    """Yields the items of one line, separated by numbers, semicolons or commas."""
    line = _OPENING.sub("", line)
    numbers = [int(match[1]) for match in _NUMBERED.finditer(line)]
    # Only consecutive numbers, since sentences can also end with a number.
    if len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        yield from _NUMBERED.sub("\n", line).split("\n")
        return
    # Semicolons first, because items between them may contain commas.
    *first, last = (_SEMICOLON if _SEMICOLON.search(line) else _COMMA).split(line)
    yield from first
    # `and` divides only the end of a list: `Tom and Jerry` alone is one item.
    yield from _LAST.split(last, maxsplit=1) if first else [last]


def _bare(part: str) -> str:
    """Returns an item without its bullet, and without surrounding quotes and punctuation."""
    part = part.strip()
    mark = _MARK.match(part)
    part = (part[mark.end() :] if mark else part).strip(_OUTER)
    return " ".join(part.split())


def _denies(part: str) -> bool:
    words = key(part)
    return words in _NOTHING or bool(_DENIAL.match(words))


def key(text: str) -> str:
    """Returns the comparison key of an item: without case, punctuation and leading articles."""
    # Marks stay in numbers and in `C#`, which would otherwise equal `C` (decision 24).
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _DROPPED.sub("", _DASH.sub(" ", folded)).split()
    # `The The` and `A` keep their last word, since a key must not be empty.
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)
