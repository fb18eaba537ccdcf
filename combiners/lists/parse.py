"""Lists as models write them: their items, read from passages, with equal items merged."""

from __future__ import annotations

import dataclasses
import json
import unicodedata
from bisect import bisect, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import regex

from leporello.combiners.stuff import read_of
from leporello.core.items import Item
from leporello.core.records import Chunk, Example, Output, Read, Span

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


def reads_of(
    example: Example, chunks: Sequence[Chunk], instruction: str, choices: tuple[str, ...] = ()
) -> list[Read]:
    """Returns a read of each chunk alone, under this instruction."""
    whole = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    return [dataclasses.replace(whole, passages=(chunk,)) for chunk in chunks]


def overlapping(one: Span, other: Span) -> bool:
    """Says whether two spans share a character."""
    return one.start < other.end and other.start < one.end


@dataclass
class Gathering:
    """Brings together what passages list.

    Attributes:
        similar: Similarity from which on two items are the same, 0 to 1; 1 is equality of their
            keys.
        verbatim: Whether only items count that stand in the passage as they are called.
        skip: Texts that do not count as an item.
    """

    similar: float
    verbatim: bool
    skip: tuple[str, ...]
    _items: dict[str, _GatheredItem] = field(default_factory=dict, init=False)

    def gather(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        """Returns the items, in the order in which they were first listed."""
        for chunk, output in zip(chunks, outputs, strict=True):
            for name, text in self._listed(output.text):
                places = [*_mentions(chunk, text)]
                if places or not self.verbatim:
                    self._item_of(name, text).add(chunk.span, places or [chunk.span])
        return [Item(gathered.text, tuple(gathered.passages)) for gathered in self._items.values()]

    def _listed(self, text: str) -> Iterable[tuple[str, str]]:
        """Returns the items of a list by their keys, the first of those that are the same."""
        skipped = {key(text) for text in self.skip}
        named: dict[str, str] = {}
        for item in items(text):
            named.setdefault(key(item), item)
        return [(name, named[name]) for name in named if name and name not in skipped]

    def _item_of(self, name: str, text: str) -> _GatheredItem:
        """Returns the item of this key, or the most similar one, or a new one."""
        if name not in self._items and self.similar < 1:
            scores = {other: similarity(name, other) for other in self._items}
            best = max(scores, key=lambda other: scores[other], default="")
            name = best if scores.get(best, 0) >= self.similar else name
        return self._items.setdefault(name, _GatheredItem(text))


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
