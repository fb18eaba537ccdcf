"""Parses lists that models write, and merges equal items of several passages."""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import regex

from leporello.combiners.stuff import read_of
from leporello.core.calls.answers import Item
from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Example, Output, Read, Span

# "- ", "* ", "1. ", "2) ", "(3) ", "a) " at the beginning of a line.
# Up to three digits, so that a year at the start of a line stays part of the item.
_MARK = regex.compile(r"\s*(?:[-*+•‣·–—▪◦]+\s+|\(?\d{1,3}[.)]\s+|\(?\p{L}\)\s+)")
_NUMBERED = re.compile(r"(?:^|\s)\(?(\d{1,3})[.)]\s+")
# Chat models fence lists as code although the prompt asks for lines.
_FENCED = re.compile(r"```\w*+(?>\s*\n)(.*)```", re.DOTALL)  # as code in Markdown
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

    A list is JSON; or lines with bullets, numbers or neither, which are not separated further,
    since `Paris, France` is one item; or one line with numbers, or with semicolons or commas before
    white space. It may be fenced as code.
    """
    stripped = text.strip()
    if fenced := _FENCED.fullmatch(stripped):
        stripped = fenced[1].strip()
    parts = _from_json(stripped)
    if parts is None:
        lines = [line for line in stripped.splitlines() if line.strip()]
        # An introduction needs lines after it; alone, `Ships:` may be the answer.
        if len(lines) > 1:
            lines = [line for line in lines if not line.rstrip().endswith((":", "："))]
        parts = [*_of_one_line(lines[0])] if len(lines) == 1 else lines
    bare = (_bare(part) for part in parts)
    return [part for part in bare if part and not _denies(part)]


def _from_json(text: str) -> list[str] | None:
    """Returns the texts and numbers of a JSON array; None if the text is not a JSON array."""
    if not text.startswith("["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    # Nested objects are left out, since no single text of them is the item.
    return [str(part) for part in parsed if isinstance(part, (str, int, float))]


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


def reads_of(
    example: Example, chunks: Sequence[Chunk], instruction: str, choices: tuple[str, ...] = ()
) -> list[Read]:
    """Returns one read per chunk, with an instruction."""
    ask = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    return [dataclasses.replace(ask, passages=(chunk,)) for chunk in chunks]


def overlapping(first: Span, second: Span) -> bool:
    """Returns whether two spans share a character."""
    return first.start < second.end and second.start < first.end


@dataclass(frozen=True, kw_only=True)
class GathersItems:
    """A combiner that merges the items of several passages.

    Items are equal if they differ only in case, punctuation and leading articles. If overlapping
    passages list an item at the same place, only one of them counts.

    Attributes:
        support: Minimum number of passages that list an item.
        verbatim: Whether to leave out items whose text is not in their passage, which a small model
            may have invented.
    """

    support: Positive = 1  # one passage is enough, because most items of a list occur once
    # Off, since models may inflect words; on, it removed invented ships (decision 24).
    verbatim: bool = False

    def _gathered(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        """Returns the items with enough passages, in the order of their first mentions."""
        gathered: dict[str, _GatheredItem] = {}
        for chunk, output in zip(chunks, outputs, strict=True):
            texts: dict[str, str] = {}
            for item in items(output.text):
                texts.setdefault(key(item), item)
            for name, text in texts.items():
                ends = _mention_ends(chunk, text)
                if name and (ends or not self.verbatim):
                    merged = gathered.setdefault(name, _GatheredItem(text))
                    # An inflected item, which the passage does not contain, keeps its support.
                    new = (ends or {chunk.end}) - merged.ends
                    merged.ends |= new
                    # Overlapping passages support an item twice only at different places.
                    if new and chunk.span not in merged.passages[-1:]:
                        merged.passages.append(chunk.span)
        all_items = (Item(item.text, tuple(item.passages)) for item in gathered.values())
        return [item for item in all_items if len(item.passages) >= self.support]


@dataclass
class _GatheredItem:
    text: str
    passages: list[Span] = field(default_factory=list)  # in document order
    ends: set[int] = field(default_factory=set)  # of its mentions; `the cat` ends where `cat` does


def _mention_ends(chunk: Chunk, text: str) -> set[int]:
    """Returns where mentions of an item in a chunk end, ignoring case and white space."""
    words = r"\s+".join(map(regex.escape, text.split()))
    matches = regex.finditer(rf"(?<!\w){words}(?!\w)", chunk.text, regex.IGNORECASE)
    return {chunk.start + match.end() for match in matches}
