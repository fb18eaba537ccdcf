"""Lines of a text, and tests whether a line may be a heading."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from leporello.text.headings.labels import Label

ALONE = 2  # blank lines around a line: one above, one below
LONGEST = 120  # characters of a heading
INDENT = 3  # blanks before a heading without markup; more indicate a list or code
PARAGRAPH = 200  # characters; a longer line is a complete paragraph

_WORDS = 15  # of a heading without markup
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
        line: Index of the line.
        title: Text without markup.
        kind: `mark`, or by its looks: `word` (Chapter 3), `number`, `name`, `caps`, `title`.
        level: Level by its markup or indentation.
        label: Number of the heading, if it has one.
        apart: Number of blank lines directly around it, 0 to 2.
        otherwise: Kind of heading if the number belongs to a list: `name`, `caps`, `title`, or
            empty.
    """

    line: int
    title: str
    kind: str
    level: float = 0
    label: Label | None = None
    apart: int = ALONE
    otherwise: str = ""


class TextLines:
    """The lines of a text, and tests of their surroundings.

    Attributes:
        starts: Offsets where the lines begin, and the end of the text.
        texts: Texts of the lines, without surrounding white space.
        indents: Numbers of white-space characters before each line.
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
        """Length of a full line: four of five lines are at most this long."""
        lengths = sorted(map(len, filter(None, self.texts)))
        return lengths[len(lengths) * 4 // 5] if lengths else 0

    @cached_property
    def has_long_paragraphs(self) -> bool:
        """Whether most of the text is in lines that are complete paragraphs."""
        lengths = [len(text) for text in self.texts]
        # Then a short line is a paragraph of its own, probably a title; in wrapped text it ends
        # one.
        return 2 * sum(length for length in lengths if length > PARAGRAPH) > sum(lengths)

    @cached_property
    def fenced(self) -> frozenset[int]:
        """Indices of lines in fenced code; a fence without an end is ignored."""
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
        """Returns whether the line above is blank, a page number, or ends a sentence."""
        above = self.at(line - 1)
        return not above or above.endswith(_STOPS) or bool(_PAGE_NUMBER.match(above))

    def is_after_clear(self, line: int) -> bool:
        """Returns whether the text of a line does not continue in the next line."""
        below = self.at(line + 1)
        # A line of wrapped text is nearly full, whereas a title ends where its words end.
        return not below or (4 * len(self.texts[line]) < 3 * self.width and not below[0].islower())

    def apart(self, line: int) -> int:
        """Returns how many of the lines above and below are blank."""
        return (not self.at(line - 1)) + (not self.at(line + 1))

    def is_listed(self, line: int) -> bool:
        """Returns whether a line ends with a page number, as in a table of contents."""
        text = self.texts[line]
        if _LEADER.search(text):
            return True
        neighbours = (self.at(line - 1), self.at(line + 1))
        # One such line may be `Apollo 11`; in contents the neighbours end with a page number as
        # well.
        return bool(_PAGE_AT_END.search(text)) and any(
            len(neighbour) <= LONGEST and _PAGE_AT_END.search(neighbour) for neighbour in neighbours
        )


def has_leader(text: str) -> bool:
    """Returns whether a line contains dots, or wide space, that lead to a page number."""
    return bool(_LEADER.search(text))


def is_title(text: str) -> bool:
    """Returns whether a text can be a heading: not a sentence, list item or table row."""
    if text[0].islower() or text[-1] in ".,;:!-" or "  " in text or "\t" in text:
        return False
    if len(text.split()) > _WORDS or text.endswith(("”", '."', '!"', '?"', ".)")):
        return False
    return any(character.isalpha() for character in text)
