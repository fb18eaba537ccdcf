"""Lists as models write them: their items, read from passages, with equal items merged."""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from bisect import bisect, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import regex

from leporello.combiners.stuff import read_of
from leporello.core.calls.answers import Item
from leporello.core.protocols import Positive, Share
from leporello.core.records import Chunk, Example, Output, Read, Span

# "- ", "* ", "1. ", "2) ", "(3) ", "a) " at the head of a line.
_MARK = regex.compile(r"\s*(?:[-*+•‣·–—▪◦]+\s+|\(?\d{1,3}[.)]\s+|\(?\p{L}\)\s+)")
_NUMBERED = re.compile(r"(?:^|\s)\(?(\d{1,3})[.)]\s+")
_FENCED = re.compile(r"```\w*+(?>\s*\n)(.*)```", re.DOTALL)  # as code in Markdown
_SEMICOLON = re.compile(r"(?:(?<!\s)\s++)?+(?:;\s|；)\s*+")
_COMMA = re.compile(r"(?:(?<!\s)\s++)?+(?:[,،]\s|[、，])\s*+")
_LAST = re.compile(r"^(?:and|or|&)\s+|(?<!\s)\s++(?:and|or|&)\s++", re.IGNORECASE)
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


def reads_of(
    example: Example, chunks: Sequence[Chunk], instruction: str, choices: tuple[str, ...] = ()
) -> list[Read]:
    """Returns a read of each chunk alone, under this instruction."""
    whole = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    return [dataclasses.replace(whole, passages=(chunk,)) for chunk in chunks]


def overlapping(one: Span, other: Span) -> bool:
    """Says whether two spans share a character."""
    return one.start < other.end and other.start < one.end


@dataclass(frozen=True, kw_only=True)
class GathersItems:
    """A combiner that brings together the items that passages list.

    Items are the same if they are without case, punctuation, and articles in front. Where passages
    overlap, an item that both list from one place counts for one of them.

    Attributes:
        support: Number of passages below which an item is left out.
        similar: Similarity from which on items are the same: their keys have so much in common, the
            more similar first; 1 asks for equal ones. Names spelt differently want 0.85; numbers
            want 1.
        verbatim: Whether to leave out items that do not stand in their passage as they are called,
            which a small model may have made up.
        skip: Items that do not count, compared as items are.
    """

    support: Positive = 1
    # Spelt alike is not the same: it would make one of two dates (decision 24).
    similar: Share = 1.0
    verbatim: bool = False
    skip: tuple[str, ...] = ()

    def _gathered(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        """Returns the items with enough passages, in the order in which they were first listed."""
        found: dict[str, _GatheredItem] = {}
        skipped = {"", *map(key, self.skip)}
        for chunk, output in zip(chunks, outputs, strict=True):
            named: dict[str, str] = {}
            for item in items(output.text):
                named.setdefault(key(item), item)
            for name, text in named.items():
                places = [*_mentions(chunk, text)]
                if name not in skipped and (places or not self.verbatim):
                    same = found.setdefault(self._known(name, found), _GatheredItem(text))
                    same.add(chunk.span, places or [chunk.span])
        listed = (Item(one.text, tuple(one.passages)) for one in found.values())
        return [item for item in listed if len(item.passages) >= self.support]

    def _known(self, name: str, found: Collection[str]) -> str:
        """Returns this key, or the most similar one that is known."""
        if name in found or self.similar == 1:
            return name
        scores = {other: similarity(name, other) for other in found}
        best = max(scores, key=lambda other: scores[other], default="")
        return best if scores.get(best, 0) >= self.similar else name


@dataclass
class _GatheredItem:
    """An item, the passages that list it, and the places in them that it was read from.

    Passages come in document order; places are kept ascending, and none overlaps another.
    """

    text: str
    passages: list[Span] = field(default_factory=list)
    places: list[Span] = field(default_factory=list)

    def add(self, passage: Span, places: Sequence[Span]) -> None:
        """Adds a passage, unless all that it has of the item are places of one before it."""
        new = [place for place in places if self._is_new(place)]
        for place in new:
            insort(self.places, place)
        if new and passage not in self.passages[-1:]:
            self.passages.append(passage)

    def _is_new(self, place: Span) -> bool:
        at = bisect(self.places, place)
        return not any(overlapping(place, seen) for seen in self.places[max(at - 1, 0) : at + 1])


def _mentions(chunk: Chunk, text: str) -> Iterator[Span]:
    """Yields where an item stands in a chunk, upper and lower case and blanks set aside."""
    words = r"\s+".join(map(regex.escape, text.split()))
    for match in regex.finditer(rf"(?<!\w){words}(?!\w)", chunk.text, regex.IGNORECASE):
        yield Span(chunk.start + match.start(), chunk.start + match.end())
