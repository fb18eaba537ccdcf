"""Lists as models write them: their items, and which of these are the same."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator

import regex

# "- ", "* ", "1. ", "2) ", "(3) ", "a) " at the head of a line.
_MARK = regex.compile(r"\s*(?:[-*+•‣·–—▪◦]+\s+|\(?\d{1,3}[.)]\s+|\(?\p{L}\)\s+)")
_NUMBERED = regex.compile(r"(?:^|\s)\(?(\d{1,3})[.)]\s+")
_FENCED = regex.compile(r"```\w*+(?>\s*\n)(.*)```", regex.DOTALL)  # as code in Markdown
_SEMICOLON = regex.compile(r"(?:(?<!\s)\s++)?+(?:;\s|；)\s*+")
_COMMA = regex.compile(r"(?:(?<!\s)\s++)?+(?:[,،]\s|[、，])\s*+")
_LAST = regex.compile(r"^(?:and|or|&)\s+|(?<!\s)\s++(?:and|or|&)\s++", regex.IGNORECASE)
_OUTER = " \t\r\n.,;:!?\"'“”„‘’«»*_`"
_ARTICLES = frozenset(("a", "an", "the"))
_NOTHING = frozenset(
    """
none
nothing
nobody
no one
none found
none given
none mentioned
none stated
none of them
na
n a
nil
null
empty
unknown
unanswerable
not mentioned
not given
not stated
not specified
not applicable
not available
""".splitlines()
)
_DENIAL = regex.compile(
    r"no (?:\w+ ){0,2}(?:items?|answers?|names?|matches|mentions?|results?|information)\b"
    r"|there (?:is|are|was|were) (?:no|none|not any|nothing)\b"
    r"|(?:this |the )?(?:passage|text|document|excerpt)s? "
    r"(?:does|do|did|gives?|names?|mentions?|contains?|lists?|says?) (?:not|no|none|nothing)\b"
)

# "The ships named are: …"
_OPENING = regex.compile(
    r"^(?=[^:,;]*\b(?:are|is|includes?|named|mentioned|following|list(?:ed)?|items?|answers?|text"
    r"|passage)\b)[^:,;]*+:\s+",
    regex.IGNORECASE,
)
# Dashes become blanks, other punctuation falls away; within numbers both stay, and what tells
# things apart, as in C and C#, 5 and 5%.
_DASH = regex.compile(r"\p{Pd}(?!\d)|(?<=[^\d\s])\p{Pd}")
_DROPPED = regex.compile(r"(?:(?<!\d)[\p{P}--[#%&@\p{Pd}]]|[\p{P}--[#%&@\p{Pd}]](?!\d))", regex.V1)


def items(text: str) -> list[str]:
    """Returns the items of a list that a model wrote, none where it says that there are none.

    A list is JSON; or lines, with bullets, numbers or without; or one line, parted by numbers,
    semicolons or commas with white space behind; each may be fenced as code. A line that ends with
    a colon introduces one. Lines with bullets are not parted further, since `Paris, France` is one
    item.
    """
    stripped = text.strip()
    if fenced := _FENCED.fullmatch(stripped):
        stripped = fenced[1].strip()
    parts = _from_json(stripped)
    if parts is None:
        lines = [line for line in stripped.splitlines() if line.strip()]
        if len(lines) > 1:
            lines = [line for line in lines if not line.rstrip().endswith((":", "："))]
        parts = [*_of_lines(lines)]
    bare = (_bare(part) for part in parts)
    return [part for part in bare if part and not _denies(part)]


def _from_json(text: str) -> list[str] | None:
    """Returns the texts and numbers of a JSON array; None if it is none."""
    if not text.startswith("["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [str(part) for part in parsed if isinstance(part, (str, int, float))]


def _of_lines(lines: list[str]) -> Iterator[str]:
    if len(lines) == 1:
        yield from _of_one_line(lines[0])
    else:
        yield from lines


def _of_one_line(line: str) -> Iterator[str]:
    """Yields what numbers, semicolons or commas part in one line."""
    line = _OPENING.sub("", line)
    numbers = [int(match[1]) for match in _NUMBERED.finditer(line)]
    if len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
        yield from _NUMBERED.sub("\n", line).split("\n")
        return
    *first, last = (_SEMICOLON if _SEMICOLON.search(line) else _COMMA).split(line)
    yield from first
    yield from _LAST.split(last, maxsplit=1) if first else [last]


def _bare(part: str) -> str:
    """Returns an item without bullet, quotes and stops around it."""
    part = part.strip()
    marked = _MARK.match(part)
    part = (part[marked.end() :] if marked else part).strip(_OUTER)
    return " ".join(part.split())


def _denies(part: str) -> bool:
    words = key(part)
    return words in _NOTHING or bool(_DENIAL.match(words))


def key(text: str) -> str:
    """Returns what items are compared by: without case, punctuation, and articles in front."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = _DROPPED.sub("", _DASH.sub(" ", folded)).split()
    while len(words) > 1 and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)


def similarity(one: str, other: str) -> float:
    """Returns how much of two keys is the same, 0 to 1: twice what matches over both lengths."""
    from difflib import SequenceMatcher

    first, second = sorted((one, other))  # the matcher is not symmetric
    return SequenceMatcher(None, first, second, autojunk=False).ratio()
