"""Lines of a text: tests whether a line may be a heading, and headings with markup."""

import re
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from leporello.text.headings.labels import Label, is_name, label_of
from leporello.text.outline import Heading

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
    """A line without markup that may be a heading."""

    line: int  # index of the line
    title: str  # text of the line
    kind: str  # kind by its looks: `word` (Chapter 3), `number`, `name`, `caps`, `title`
    level: float = 0  # level by its indentation
    label: Label | None = None  # number of the heading, if it has one
    apart: int = ALONE  # number of blank lines directly around it, 0 to 2
    # Kind of heading if the number belongs to a list: `name`, `caps`, `title`, or empty
    otherwise: str = ""


class TextLines:
    """The lines of a text without the white space around them, and tests of their surroundings."""

    def __init__(self, text: str) -> None:
        raw = text.splitlines(keepends=True)
        self.starts = list(accumulate(map(len, raw), initial=0))  # and the end of the text
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
        # Then a short line is probably a title; in wrapped text it ends a paragraph.
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
        # One such line may be `Apollo 11`; in contents the neighbours end with a page number too.
        return bool(_PAGE_AT_END.search(text)) and any(
            len(neighbour) <= LONGEST and _PAGE_AT_END.search(neighbour) for neighbour in neighbours
        )


def is_title(text: str) -> bool:
    """Returns whether a text can be a heading: not a sentence, list item or table row."""
    if text[0].islower() or text[-1] in ".,;:!-" or "  " in text or "\t" in text:
        return False
    if len(text.split()) > _WORDS or text.endswith(("”", '."', '!"', '?"', ".)")):
        return False
    return any(character.isalpha() for character in text)


_ATX = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
_CLOSING = re.compile(r"(?<![ \t])[ \t]++#++$|^#++$")
_RULE = 3  # characters `=` that suffice under a longer title
_UNDERLINES = "=-~^*+\"'`.:_#"


def marked(lines: TextLines) -> list[Heading]:
    """Returns the headings with markup and their levels; lower levels enclose higher ones."""
    headings: list[Heading] = []
    styles: dict[str, int] = {}
    for line, text in enumerate(lines.texts):
        atx = _atx(lines, line) if text[:1] == "#" else None
        if (heading := atx or underlined(lines, line, styles)) and line not in lines.fenced:
            headings.append(heading)
    # In code and configuration files a `#` begins a comment, but hardly ever `##`.
    if all(heading.level <= 1 for heading in headings):
        headings = [h for h in headings if h.level != 1 or not h.title[:1].islower()]
    return _levelled(headings)


def _atx(lines: TextLines, line: int) -> Heading | None:
    """Reads `## Title`; consecutive lines of the same level are comments."""
    mark = _ATX.match(lines.texts[line][: 4 * LONGEST])
    if not mark or lines.indents[line] > INDENT or lines.at(line - 1)[:1] not in ("", "#", "-"):
        return None
    for near in (lines.at(line - 1), lines.at(line + 1)):
        if near.startswith("#") and len(near) - len(near.lstrip("#")) == len(mark[1]):
            return None
    title = _CLOSING.sub("", mark[2] or "").strip()
    return Heading(title, lines.starts[line], len(mark[1]))


def underlined(lines: TextLines, line: int, styles: dict[str, int]) -> Heading | None:
    """Reads an underline below a title with a blank line above; styles rank by first occurrence."""
    if not _is_rule(rule := lines.at(line)):
        return None
    title, over = lines.at(line - 1), lines.at(line - 2)
    if not 0 < len(title) <= LONGEST or not _can_be_underlined(title):
        return None
    overlined = over == rule
    long_enough = len(rule) >= len(title) - 2 or (len(rule) >= _RULE and rule[0] == "=")
    inside = lines.indents[line] <= INDENT and lines.indents[line - 1] <= INDENT
    if not long_enough or not inside or (over and not overlined):
        return None
    # As in reStructuredText: each file chooses its own order of underlines.
    level = styles.setdefault(rule[0] * 2 if overlined else rule[0], len(styles) + 1)
    first = line - 2 if overlined else line - 1
    return Heading(title, lines.starts[first], level)


def _is_rule(text: str) -> bool:
    """Returns whether a line repeats one character, and is not an empty Markdown heading."""
    is_run = len(text) > 1 and text[0] in _UNDERLINES and not text.strip(text[0])
    return is_run and not _ATX.match(text[:LONGEST])


def _can_be_underlined(title: str) -> bool:
    """Returns whether a line can be a title, unlike a table's head, a list item or a sentence."""
    label = label_of(title)
    words = (label and label.title) or title
    has_gap = any(gap in words for gap in ("  ", "\t", "|"))
    if has_gap or title[0] in "-*+>|#" or title[-1] in ".,;":
        return False
    return any(character.isalnum() for character in title) and not _LEADER.search(words)


def _levelled(headings: list[Heading]) -> list[Heading]:
    """Corrects the level of a first heading that is above all others but is not a title."""
    if len(headings) > 1:
        first, *following = headings
        # MuLD's theses lost one `#` when they were cut at the first heading (decision 13).
        deeper = min(heading.level for heading in following)
        if first.level < deeper and (label_of(first.title) or is_name(first.title)):
            return [replace(first, level=deeper), *following]
    return headings
