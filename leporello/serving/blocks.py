"""Divides a text into blocks that the page shows: headings, paragraphs, items, tables and code.

Blocks never change the text; they only have offsets, so that answers keep their exact place.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, pairwise
from pathlib import PurePath
from typing import Literal

from leporello.core.records import Document, Span
from leporello.loaders import Code, Markdown
from leporello.text.headings import headings

Kind = Literal["heading", "paragraph", "lines", "code", "quote", "item", "table", "rule"]

_REGION = 100_000  # characters that are divided at once, or more up to an empty line
_LONGEST = 4_000  # characters of a block; longer blocks are divided
_ROWS = 40  # lines of a block of a table or of code
_LINES = 100  # lines of a block
_HEADER = 10  # first rows of a table that may name its columns
_NARROW = 40  # characters; shorter lines are verses, addresses or lists
_KEPT = (*Code.suffixes, ".json", ".jsonl", ".log", ".rst", ".xml")

_FILLED = re.compile(r"^[^\S\n]*+\S", re.M)
LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_RULE = re.compile(r"\A {0,3}([-*_])[ \t]*+(?:\1[ \t]*+){2,}+\Z")
PIPES = re.compile(r"\A[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*\Z")
_BULLET = re.compile(r"(?<![ \t])[ \t]*+(?:[-*+•◦▪‣–]|[o](?=\t))[ \t]++(?=\S)")
MARKER = re.compile(rf"{_BULLET.pattern}|(?<![ \t])[ \t]*+\d{{1,3}}[.)][ \t]++(?=\S)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)")
QUOTE = re.compile(r" {0,3}>[ \t]?")
_TAB = re.compile(r"[^\t\n]\t+[^\s]")
_COLUMNS = re.compile(r"\S {3,}\S")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a text with one shape."""

    kind: Kind  # in `lines` and `code` line breaks are kept, elsewhere they are blanks
    start: int
    end: int
    level: int = 0  # of a heading from 1, of an item from 0; 1 for the first rows of a table
    names: tuple[str, ...] = ()  # columns of a table whose cells repeat them: `Price: 3`
    markdown: bool = False  # whether emphasis marks have a meaning


def blocks(document: Document, start: int, end: int) -> tuple[tuple[Block, ...], Span]:
    """Returns the blocks that intersect a range, and the range from the first to the next block.

    Only the regions around the range are divided, since a text may have many megabytes.
    """
    regions: Sequence[int] = document.memo("regions", partial(_regions, document.text))
    first = bisect_right(regions, start, hi=len(regions) - 1) - 1
    last = max(first + 1, bisect_left(regions, end, hi=len(regions) - 1))
    near = [b for r in range(first, last) for b in _region(document, regions, r)]
    starts = [block.start for block in near]
    low = max(0, bisect_right(starts, start) - 1)
    high = max(low + 1, bisect_left(starts, end))
    begin = starts[low] if low else regions[first]
    stop = starts[high] if high < len(near) else regions[last]
    return tuple(near[low:high]), Span(begin, stop)


def _regions(text: str) -> Sequence[int]:
    """Returns the borders of regions, which are at empty lines."""
    borders = [0]
    while (empty := text.find("\n\n", borders[-1] + _REGION)) >= 0:
        borders.append(empty + 2)
    return [*borders, len(text)]


def _region(document: Document, regions: Sequence[int], number: int) -> tuple[Block, ...]:
    def compute() -> tuple[Block, ...]:
        start, end = regions[number : number + 2]
        files = [(m.name, m.start, m.end) for m in document.members]
        titles = document.memo("titles", partial(_titles, document))
        return tuple(
            block
            for name, a, b in files or [(document.id, start, end)]
            if a < end and start < b
            for block in _BlockScan(
                document.text, min(b, end), PurePath(name).suffix.lower(), titles
            ).run(max(a, start))
        )

    return document.memo(("blocks", number), compute)


def _titles(document: Document) -> dict[int, tuple[str, int]]:
    """Returns the titles and levels of sections by their first characters."""
    guessed = () if document.places else headings(document)
    sections = reversed(document.sections or guessed)  # the outer of two at one character
    return {section.start: (section.title, section.level) for section in sections}


class _BlockScan:
    def __init__(
        self, text: str, end: int, suffix: str, titles: dict[int, tuple[str, int]]
    ) -> None:
        self.text, self.end, self.titles = text, end, titles
        self.markdown = suffix in Markdown.suffixes
        self.is_kept = suffix in _KEPT
        self.last: Block | None = None

    def run(self, at: int) -> Iterator[Block]:
        while match := _FILLED.search(self.text, at, self.end):
            block = self._kept(match.start()) if self.is_kept else self._next(match.start())
            at = block.end + 1
            yield from self._divided(block)

    def _next(self, start: int) -> Block:
        lines = self._lines(start)
        if (heading := self._heading(lines)) is not None:
            return heading
        if self.markdown and (fence := _FENCE.match(lines[0][0].rstrip("\n"))):
            return self._fenced(lines[0], fence[1])
        self.last = self._table(lines) or self._other(lines)
        return self.last

    def _kept(self, start: int) -> Block:
        lines = LINE.finditer(self.text, start, self.end)
        return self._block("code", [*islice(lines, _ROWS)])

    def _block(self, kind: Kind, lines: Sequence[re.Match[str]], level: int = 0) -> Block:
        start, end = lines[0].start(), lines[-1].end()
        end -= lines[-1][0].endswith("\n")
        return Block(kind, start, end, level, markdown=self.markdown)

    def _lines(self, start: int) -> list[re.Match[str]]:
        """Returns the lines up to an empty line or a title, at most `_LINES`."""
        lines: list[re.Match[str]] = []
        for line in LINE.finditer(self.text, start, self.end):
            is_title = bool(lines) and line.start() in self.titles
            if is_title or len(lines) == _LINES or line[0].isspace():
                break
            lines.append(line)
        return lines

    def _heading(self, lines: Sequence[re.Match[str]]) -> Block | None:
        title, level = self.titles.get(lines[0].start(), ("", 0))
        for count in range(1, min(4, len(lines) + 1)):
            text = self.text[lines[0].start() : lines[count - 1].end()]
            if title and _bare(text) == _bare(title):
                underlined = count < len(lines) and _UNDERLINE.fullmatch(lines[count][0].rstrip())
                return self._block("heading", lines[: count + bool(underlined)], level)
        return None

    def _fenced(self, opening: re.Match[str], fence: str) -> Block:
        closing = re.compile(rf"^ {{0,3}}{fence}{fence[0]}*[ \t]*$", re.M)
        match = closing.search(self.text, opening.end(), self.end)
        return Block("code", opening.start(), match.end() if match else self.end, markdown=True)

    def _table(self, lines: Sequence[re.Match[str]]) -> Block | None:
        last = self.last
        follows = last is not None and last.kind == "table" and last.end + 1 == lines[0].start()
        rows = next((n for n, m in enumerate(lines) if not self._is_row(m[0])), len(lines))
        if rows < 2 - follows:  # one row may as well be prose
            return None
        if self.markdown:
            is_marked = follows or ("|" in lines[1][0] and PIPES.match(lines[1][0].rstrip()))
            return self._block("table", lines[:rows], int(not follows)) if is_marked else None
        names = last.names if last and follows else _columns([m[0] for m in lines[:_HEADER]])
        return replace(
            self._block("table", lines[: min(rows, _ROWS)], int(not follows)), names=names
        )

    def _is_row(self, line: str) -> bool:
        return "|" in line if self.markdown else _TAB.search(line) is not None

    def _other(self, lines: Sequence[re.Match[str]]) -> Block:
        first = lines[0][0]
        if self.markdown and _RULE.match(first.rstrip()):
            return self._block("rule", lines[:1])
        if self.markdown and QUOTE.match(first):
            return self._block("quote", self._until(lines, _FENCE))
        if marker := MARKER.match(first):
            indent = marker[0].expandtabs(4)
            level = min(4, (len(indent) - len(indent.lstrip())) // 2)
            return self._block("item", self._until(lines, MARKER, _FENCE), level)
        if self.markdown:
            return self._markdown(lines)
        lines = lines[:1] if _TAB.search(first) else self._until(lines, _TAB)
        return self._block(_shape([line[0] for line in lines]), lines)

    def _markdown(self, lines: Sequence[re.Match[str]]) -> Block:
        last = self.last
        is_inside = last is not None and (last.kind == "item" or last.level > 0)
        indented = lines[0][0].startswith(("    ", "\t"))
        if indented and not is_inside:
            return replace(self._block("code", lines), markdown=False)
        level = last.level + (last.kind == "item") if last and is_inside and indented else 0
        return self._block("paragraph", self._until(lines, _BULLET, _FENCE, QUOTE), level)

    def _until(
        self, lines: Sequence[re.Match[str]], *ends: re.Pattern[str]
    ) -> Sequence[re.Match[str]]:
        """Returns the first line and those after it, up to a line that matches a pattern."""
        patterns = [end for end in ends if self.markdown or end not in (_FENCE, QUOTE)]
        for n, line in enumerate(lines[1:], 1):
            body = line[0].rstrip("\n")
            if any((p.search if p is _TAB else p.match)(body) for p in patterns):
                return lines[:n]
        return lines

    def _divided(self, block: Block) -> Iterator[Block]:
        """Yields a block in parts, at ends of lines or else at blanks."""
        while block.end - block.start > _LONGEST:
            most = block.start + _LONGEST
            ends = (self.text.rfind(mark, block.start + 1, most) for mark in "\n ")
            end = next((end + 1 for end in ends if end > 0), most)
            yield replace(block, end=end)
            block = replace(block, start=end)
        yield block


def _bare(title: str) -> str:
    return " ".join(title.strip(" \t\n#").split()).casefold()


def _shape(lines: Sequence[str]) -> Kind:
    """Returns whether a paragraph is filled text, verse, or arranged with blanks."""
    indented = sum(line.startswith(("    ", "\t")) for line in lines)
    arranged = sum(bool(_COLUMNS.search(line)) for line in lines)
    if 2 * max(indented, arranged) > len(lines):
        return "code"
    bodies = [line.strip() for line in lines]
    widest = max(map(len, bodies))
    # A line of filled text ends because the first word of the next line has no room.
    ended = sum(
        len(line) + 1 + len(following.split(maxsplit=1)[0]) < 0.85 * widest
        for line, following in pairwise(bodies)
    )
    is_verse = len(lines) > 1 and (widest < _NARROW or 3 * ended > len(lines) - 1)
    return "lines" if is_verse else "paragraph"


def _columns(lines: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of columns, if the cells of the row below begin with them."""
    for row, below in pairwise(lines):
        names = row.rstrip("\n").split("\t")
        starts = [cell.partition(": ")[0] for cell in below.rstrip("\n").split("\t")]
        if all(": " in cell for cell in below.rstrip("\n").split("\t")) and {*starts} <= {*names}:
            return tuple(names)
    return ()
