"""Builds text element by element, with exact offsets of headings and places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache

from leporello.core.records import Loss, Place
from leporello.text.outline import Extracted, Heading, outline

_UNSEEN = frozenset({"script", "style", "template", "title"})
_PARAGRAPHS = re.compile(
    "address|article|aside|blockquote|dl|fieldset|figure|form|h[1-6]|hr|main|nav|[ou]l|p|pre"
    "|section|table"
)
_LINES = re.compile(
    "body|caption|d[dt]|div|figcaption|footer|header|li|option|summary|t(?:body|foot|head|r)"
)
_CELLS = frozenset({"td", "th"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_BLANKS = re.compile(r"[ \t\n\r\f]+")
# Losses of elements without text.
_LOST = {
    "img": ("image", "has no alternative text; images are not read"),
    "iframe": ("frame", "shows another page, which is not fetched"),
    "frame": ("frame", "shows another page, which is not fetched"),
    "object": ("embedded object", "is not read"),
    "embed": ("embedded object", "is not read"),
    "canvas": ("drawing", "is drawn by a script, which is not run"),
    "svg": ("drawing", "only its text is read"),
    "video": ("video", "is not read"),
    "audio": ("sound", "is not read"),
    "script": ("script", "is not run, and may contain the text; save the page from a browser"),
}
_LITTLE = 200  # characters of a page that scripts may have been meant to fill


class _Gap(IntEnum):
    """Separator before a text; the strongest requested separator is written."""

    NONE = 0
    SPACE = 1
    CELL = 2
    LINE = 3
    PARAGRAPH = 4

    @property
    def text(self) -> str:
        return ("", " ", "\t", "\n", "\n\n")[self]


class Flow:
    """Writes texts and separators in order, following HTML elements.

    lxml calls `start`, `end`, `data` and `close` while it parses; formats with other elements call
    them with the names of HTML elements.

    Attributes:
        pieces: Parts of the text so far, alternately a separator and a text.
        title: Title of the document.
        losses: Losses other than those of elements.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.title = ""
        self.losses: list[Loss] = []
        self._headings: list[Heading] = []
        self._places: list[tuple[str, int]] = []  # names, and where they begin
        self._place = ""  # name of the place that begins with the next text
        self._lost: Counter[str] = Counter()  # elements, by their names
        self._length = 0
        self._gap = _Gap.NONE
        self._unseen: list[str] = []  # the unseen elements that are open
        self._preformatted = 0  # how many <pre> are open
        self._heading = 0  # the level of the heading that is open
        self._heading_from = 0  # number of pieces before it

    def start(self, tag: str, attributes: Mapping[str, str] = {}) -> None:
        """Begins an element, and separates it from the text before it."""
        if tag in _LOST and not self._unseen:
            # An empty `alt` marks a picture as decoration, so nothing is lost.
            self._lost[tag] += tag != "img" or "alt" not in attributes
            self.data(attributes.get("alt", ""))
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif tag == "br":
            # Old pages separate paragraphs by two <br>.
            self._part(_Gap.PARAGRAPH if self._gap is _Gap.LINE else _Gap.LINE)
        elif gap := _gap_at(tag):
            self._open_block(tag, gap)

    def end(self, tag: str) -> None:
        """Ends an element, and separates it from the text after it."""
        if tag in _UNSEEN:
            self._unseen.remove(tag)
        elif tag in _HEADINGS:
            self._close_heading()
        self._preformatted -= tag == "pre"
        if tag not in _CELLS:
            self._part(_gap_at(tag))

    def data(self, text: str) -> None:
        """Writes text, and collapses white space outside of preformatted elements."""
        if self._unseen:
            # Only before the text, since drawings in the page have titles too.
            if self._unseen == ["title"] and not self.pieces:
                self.title += text
        elif self._preformatted:
            self._write(text)
        else:
            self._write_collapsed(_BLANKS.sub(" ", text))

    def close(self) -> None:
        """Does nothing; lxml calls it at the end of the page."""

    def element(self, tag: str, text: str) -> None:
        """Writes an element that contains only text."""
        self.start(tag)
        self.data(text)
        self.end(tag)

    def place(self, name: str) -> None:
        """Begins a place with the next text; it ends where the next place begins."""
        self._place = name

    def extracted(self) -> Extracted:
        """Returns the text with its sections, places and losses."""
        text = "".join(self.pieces)
        lost = {tag: count for tag, count in self._lost.items() if count}
        # Nearly every page has scripts; only an almost empty one was meant to be filled by them.
        if len(text) >= _LITTLE:
            lost.pop("script", None)
        losses = (Loss(*_LOST[tag], count=count) for tag, count in lost.items())
        ends = [start for _, start in self._places[1:]] + [len(text)]
        places = (Place(*place, end) for place, end in zip(self._places, ends, strict=False))
        sections = outline(self._headings, len(text))
        return Extracted(text, self.title, sections, (*places,), (*self.losses, *losses))

    def _write_collapsed(self, text: str) -> None:
        if text.startswith(" "):
            self._part(_Gap.SPACE)
        if word := text.strip(" "):
            self._write(word)
            if text.endswith(" "):
                self._part(_Gap.SPACE)

    def _write(self, text: str) -> None:
        gap = self._gap.text if self.pieces else ""
        self.pieces += (gap, text)
        if self._place:
            self._places.append((self._place, self._length + len(gap)))
            self._place = ""
        self._length += len(gap) + len(text)
        self._gap = _Gap.NONE

    def _part(self, gap: _Gap) -> None:
        self._gap = max(self._gap, gap)

    def _open_block(self, tag: str, gap: _Gap) -> None:
        self._part(gap)
        self._preformatted += tag == "pre"
        if len(self.pieces) > self._heading_from:  # a heading ends at the next block, closed or not
            self._close_heading()
        if tag in _HEADINGS:
            self._heading, self._heading_from = int(tag[1]), len(self.pieces)

    def _close_heading(self) -> None:
        """Records the open heading, if it has text."""
        if self._heading and (parts := self.pieces[self._heading_from + 1 :]):  # after its gap
            text = "".join(parts)
            start = self._length - len(text)
            self._headings.append(Heading(" ".join(text.split()), start, self._heading))
        self._heading = 0


# A page has few different tags, but each is looked up twice per element.
@lru_cache
def _gap_at(tag: str) -> _Gap:
    if _PARAGRAPHS.fullmatch(tag):
        return _Gap.PARAGRAPH
    if _LINES.fullmatch(tag):
        return _Gap.LINE
    return _Gap.CELL if tag in _CELLS else _Gap.NONE
