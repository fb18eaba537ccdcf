"""The lines of a text, and which of them may be headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from leporello.text.headings.labels import Label

ALONE = 2  # blank lines around a line: one above, one below
LONGEST = 120  # characters of a heading
INDENT = 3  # blanks before a heading that nothing marks; more is a list or code
PARAGRAPH = 200  # characters of a line that is a whole paragraph

_WORDS = 15  # of a heading that nothing marks
_STOPS = tuple(".!?:;…”\"')]’»")

_FENCE = re.compile(r"(`{3,}|~{3,})")
_PAGE = r"(?:\d{1,4}|[ivxlc]{1,6})"
_LEADER = re.compile(rf"\.{{3}}|(?:\. ){{3}}|…|·{{2}}|(?:[ ]{{2}}|\t[ ]?){_PAGE}$")
_PAGE_AT_END = re.compile(rf"\s{_PAGE}$")
_PAGE_NUMBER = re.compile(rf"[-–—\[(]*\s*(?:page\s+)?{_PAGE}\s*[-–—\])]*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HeadingCandidate:
    """A line that may be a heading.

    Attributes:
        line: Its number.
        title: Its text, marks left out.
        kind: `mark`; or what it looks like: `word` (Chapter 3), `number`, `name`, `caps`, `title`.
        level: Level by its mark, or by how deep it is indented.
        label: Its number, if it has one.
        apart: Number of the two lines around it that are blank.
        otherwise: Kind of heading that it looks like if its number is none: `caps`, `title`, or
            nothing.
    """

    line: int
    title: str
    kind: str
    level: float = 0
    label: Label | None = None
    apart: int = ALONE
    otherwise: str = ""


class TextLines:
    """The lines of a text, and what stands around each.

    Attributes:
        starts: Offsets at which the lines begin, and the end of the text.
        texts: Texts of the lines, without the white space around them.
        indents: Number of white-space characters before each.
    """

    def __init__(self, text: str) -> None:
        raw = text.splitlines(keepends=True)
        self.starts = list(accumulate(map(len, raw), initial=0))
        self.texts = [line.strip("\ufeff \t\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029") for line in raw]
        self.indents = [len(line) - len(line.lstrip("\ufeff \t")) for line in raw]

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, line: int) -> str:
        """Returns a line's text; outside the document everything is blank."""
        return self.texts[line] if 0 <= line < len(self.texts) else ""

    @cached_property
    def width(self) -> int:
        """How long the lines are that are full: four of five lines are no longer."""
        lengths = sorted(map(len, filter(None, self.texts)))
        return lengths[len(lengths) * 4 // 5] if lengths else 0

    @cached_property
    def has_long_paragraphs(self) -> bool:
        """Whether most of the text stands in lines that are whole paragraphs."""
        lengths = [len(text) for text in self.texts]
        return 2 * sum(length for length in lengths if length > PARAGRAPH) > sum(lengths)

    @cached_property
    def fenced(self) -> frozenset[int]:
        """The lines of code between fences; a fence that is not closed opens nothing."""
        inside: set[int] = set()
        opened, mark = -1, ""
        for line, text in enumerate(self.texts):
            if text[:1] not in "`~" or not (fence := _FENCE.match(text)):
                continue
            if opened < 0:
                opened, mark = line, fence[1]
            elif text.startswith(mark) and not text.strip(mark[0]):
                inside.update(range(opened, line + 1))
                opened = -1
        return frozenset(inside)

    def is_before_clear(self, line: int) -> bool:
        """Says whether what stands above is blank, or has come to an end."""
        above = self.at(line - 1)
        return not above or above.endswith(_STOPS) or bool(_PAGE_NUMBER.match(above))

    def is_after_clear(self, line: int) -> bool:
        """Says whether a line does not run on into the next one."""
        below = self.at(line + 1)
        return not below or (4 * len(self.texts[line]) < 3 * self.width and not below[0].islower())

    def apart(self, line: int) -> int:
        """Returns how many of the lines above and below are blank."""
        return (not self.at(line - 1)) + (not self.at(line + 1))

    def is_listed(self, line: int) -> bool:
        """Says whether a line ends as those of a table of contents do: with a page's number."""
        text = self.texts[line]
        if _LEADER.search(text):
            return True
        around = (self.at(line - 1), self.at(line + 1))
        return bool(_PAGE_AT_END.search(text)) and any(
            len(neighbour) <= LONGEST and _PAGE_AT_END.search(neighbour) for neighbour in around
        )


def has_leader(text: str) -> bool:
    """Says whether a line leads to a page's number, or on with dots."""
    return bool(_LEADER.search(text))


def is_title(text: str) -> bool:
    """Says whether words can be a heading: no sentence, no list item, no row of a table."""
    if text[0].islower() or text[-1] in ".,;:!-" or "  " in text or "\t" in text:
        return False
    if len(text.split()) > _WORDS or text.endswith(("”", '."', '!"', '?"', ".)")):
        return False
    return any(character.isalpha() for character in text)
