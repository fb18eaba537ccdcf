"""Builds text element by element, with exact offsets of headings and places."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from itertools import accumulate
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias
from xml.etree.ElementTree import Element, TreeBuilder

from leporello.core.records import Document, Loss, Place
from leporello.loaders.figures import formula, mark_figure
from leporello.loaders.tables.open_table import OpenTable
from leporello.text.outline import Heading, outline


class Gap(IntEnum):
    """Separator before a text; the strongest requested separator is written."""

    NONE = 0
    FIGURE = 1  # separates figures only
    SPACE = 2
    CELL = 3
    LINE = 4
    PARAGRAPH = 5


_GAP_TEXTS = ("", "", " ", "\t", "\n", "\n\n")
_PARAGRAPHS = (
    "address", "article", "aside", "blockquote", "dl", "fieldset", "figure", "form", "hr", "main",
    "nav", "ul", "ol", "menu", "p", "pre", "section", "table",
)  # fmt: skip
_LINES = (
    "body", "caption", "dd", "dt", "div", "figcaption", "footer", "header", "li", "option",
    "center", "details", "dialog", "hgroup", "legend", "summary", "tbody", "tfoot", "thead", "tr",
)  # fmt: skip
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
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
_HIDDEN = ("hidden text", "is in the file, but is not shown")
_LITTLE = 200  # characters of a page that scripts may have been meant to fill
_NOT_SHOWN = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)(?![\w-])", re.I)
# Runs of white space except single blanks, which stay.
_BLANKS = re.compile(r"[\t\n\r\f][ \t\n\r\f]*+| [ \t\n\r\f]++")
# Looking up a member of an enumeration takes longer than writing a word.
_NONE_GAP, _FIGURE_GAP, _SPACE_GAP, _CELL_GAP = Gap.NONE, Gap.FIGURE, Gap.SPACE, Gap.CELL
_NONE: Mapping[str, str] = MappingProxyType({})
# Separator before and after an element, and functions that begin and end it in a flow, by its name.
Tag: TypeAlias = tuple[
    Gap, Callable[[Any, str, Mapping[str, str]], None] | None, Callable[[Any, str], None] | None
]


class Flow:
    """Writes texts and separators in order, following HTML elements.

    lxml calls `start`, `end`, `data` and `close` while it parses; formats with other elements call
    them with the names of HTML elements. `pieces` are alternately a separator and a text.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.title = ""
        self.losses: list[Loss] = []
        # `start` of headings and of places counts pieces until the text is complete.
        self._headings: list[Heading] = []
        self._places: list[tuple[str, int]] = []
        self._place = ""  # name of the place that begins with the next text
        self._lost: Counter[str] = Counter()  # elements, by their names
        self._concealed: list[int] = []  # characters of each text that is not shown
        self._gap = _NONE_GAP
        self.is_labelled = False
        self._aside: TreeBuilder | None = None  # elements that are not written as they come
        self._depth = 0  # elements open in it
        self._then: Callable[[Element], None] = self._conceal
        self._preformatted = 0  # how many <pre> are open
        self._heading = 0  # the level of the heading that is open
        self._heading_from = 0  # number of pieces before it
        self._figures: list[int] = []  # number of pieces before each open <sup> and <sub>
        self._height = ""  # `sup` or `sub` if runs of text are raised or lowered
        self.tables: list[OpenTable] = []  # that are open

    def start(self, tag: str, attributes: Mapping[str, str] = _NONE) -> None:
        """Begins an element, and separates it from the text before it."""
        if self._aside is not None:
            self._aside.start(tag, {**attributes})
            self._depth += 1
            return
        if attributes and _is_hidden(attributes):
            self.aside(tag, attributes, self._conceal)
            return
        entry = self.tags.get(tag)
        if entry is not None:
            gap, begin, _ = entry
            if gap:
                if gap > self._gap:
                    self._part(gap)
                if gap > _CELL_GAP and self._heading and len(self.pieces) > self._heading_from:
                    self._close_heading()  # the next block ends a heading
            if begin is not None:
                begin(self, tag, attributes)

    def end(self, tag: str) -> None:
        """Ends an element, and separates it from the text after it."""
        if self._aside is not None:
            self._aside.end(tag)
            self._depth -= 1
            if not self._depth:
                aside, self._aside = self._aside, None
                self._then(aside.close())
            return
        entry = self.tags.get(tag)
        if entry is not None:
            gap, _, finish = entry
            if finish is not None:
                finish(self, tag)
            if gap > self._gap:
                self._part(gap)

    def data(self, text: str) -> None:
        """Writes text, and collapses white space outside of preformatted elements."""
        if self._aside is not None:
            self._aside.data(text)
        elif self._preformatted:
            self._write(text)
        else:
            if "  " in text or not text.isprintable():  # in few texts; a search takes longer
                text = _BLANKS.sub(" ", text)
            if text[:1] == " " and self._gap < _SPACE_GAP:
                self._gap = _SPACE_GAP
            if word := text.strip(" "):
                self._write(word)
                if text[-1] == " ":
                    self._gap = _SPACE_GAP

    def close(self) -> None:
        """Does nothing; lxml calls it at the end of the page."""

    def element(self, tag: str, text: str) -> None:
        """Writes an element that contains only text."""
        self.start(tag)
        self.data(text)
        self.end(tag)

    def label(self, text: str) -> None:
        """Writes the number of an item or heading; the next text continues its line."""
        if text:
            self._write(text)
            self.join_label()

    def shift(self, height: str) -> None:
        """Raises (`sup`) or lowers (`sub`) the next texts; empty puts them on the line."""
        if height != self._height:
            if self._height:
                self.end(self._height)
            if height:
                self.start(height)
            self._height = height

    def join_label(self) -> None:
        """Lets the next text continue the line of the label before it."""
        self._gap, self.is_labelled = _SPACE_GAP, True

    @property
    def is_aside(self) -> bool:
        """Whether an element is open that is not written."""
        return self._aside is not None

    def aside(
        self, tag: str, attributes: Mapping[str, str], then: Callable[[Element], None]
    ) -> None:
        """Begins an element that is not written; it is passed to a function at its end."""
        self._aside, self._depth, self._then = TreeBuilder(), 1, then
        self._aside.start(tag, {**attributes})

    def conceal(self, text: str) -> None:
        """Counts text that is not shown as a loss."""
        size = len(" ".join(text.split()))
        self._concealed += [size] if size else []

    def place(self, name: str) -> None:
        """Adds a place that begins with the next text, and ends where the next place begins."""
        self._place = name

    def extracted(self) -> Document:
        """Returns the text with its sections, places and losses."""
        text = "".join(self.pieces)
        lost = {tag: count for tag, count in self._lost.items() if count}
        # Nearly every page has scripts; only an almost empty one was meant to be filled by them.
        if len(text) >= _LITTLE:
            lost.pop("script", None)
        losses = [Loss(*_LOST[tag], count=count) for tag, count in lost.items()]
        if self._concealed:
            size = sum(self._concealed)
            losses.append(Loss(*_HIDDEN, characters=size, count=len(self._concealed)))
        at = [0, *accumulate(map(len, self.pieces))] if self._headings or self._places else []
        headings = [replace(heading, start=at[heading.start]) for heading in self._headings]
        # The first of several places in a row of a table is that of the row.
        begun = dict(sorted({at[number]: n for n, number in reversed(self._places)}.items()))
        ends = [*[*begun][1:], len(text)]
        places = (
            Place(n, start, end) for (start, n), end in zip(begun.items(), ends, strict=False)
        )
        sections = outline(headings, len(text))
        return Document(
            "", text, self.title, sections, places=(*places,), losses=(*self.losses, *losses)
        )

    def _write(self, text: str) -> None:
        gap = self._gap if self.pieces else _NONE_GAP
        if gap is _FIGURE_GAP and text[:1].isdigit():
            gap = _SPACE_GAP
        self.pieces += (_GAP_TEXTS[gap], text)
        if self._place:
            self._places.append((self._place, len(self.pieces) - 1))
            self._place = ""
        self._gap, self.is_labelled = _NONE_GAP, False

    def _part(self, gap: Gap) -> None:
        if self.is_labelled and gap > _SPACE_GAP:
            gap = _SPACE_GAP
        self._gap = gap if gap > self._gap else self._gap  # faster than max

    def _close_heading(self, _tag: str = "") -> None:
        """Records the open heading, if it has text."""
        if self._heading and (parts := self.pieces[self._heading_from + 1 :]):  # after its gap
            title = " ".join("".join(parts).split())
            self._headings.append(Heading(title, self._heading_from + 1, self._heading))
        self._heading = 0

    def _start_heading(self, tag: str, _attributes: Mapping[str, str]) -> None:
        self._heading, self._heading_from = int(tag[1]), len(self.pieces)

    def _start_preformatted(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        self._preformatted += 1

    def _end_preformatted(self, _tag: str) -> None:
        self._preformatted -= 1

    def _end_item(self, _tag: str) -> None:
        self.is_labelled = False

    def _start_table(self, _tag: str, attributes: Mapping[str, str]) -> None:
        if self.tables:
            self.tables[-1].has_tables = True
        self.tables.append(OpenTable(len(self.pieces)))
        self.tables[-1].is_layout = attributes.get("role") in ("presentation", "none")

    def _start_rows(self, tag: str, _attributes: Mapping[str, str]) -> None:
        if self.tables:
            self.tables[-1].start_rows(tag, len(self.pieces))

    def _start_cell(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.is_labelled = False
        if self.tables:
            self.tables[-1].start_cell(tag, attributes, len(self.pieces))

    def _end_rows(self, tag: str) -> None:
        if self.tables:
            self.tables[-1].end_rows(tag, len(self.pieces))

    def _end_table(self, _tag: str) -> None:
        if self.tables:
            self.tables[-1].end_rows("table", len(self.pieces))
            self._replace(self.tables.pop())

    def _replace(self, table: OpenTable) -> None:
        first, headings, places = table.first, self._headings, self._places
        begin = bisect_left(headings, first, key=attrgetter("start"))
        inside = ((headings[i].start, headings[i].title) for i in range(begin, len(headings)))
        lines = table.lines(self.pieces, inside)
        if not lines:
            return
        gap = self.pieces[first]
        del self.pieces[first:]
        for _, line in lines:
            self.pieces += (gap, line)
            gap = "\n"
        begun = [at for at, _ in lines]

        def moved(piece: int) -> int:
            return first + 2 * max(bisect_right(begun, piece) - 1, 0) + 1

        # A heading that is a row by itself remains a heading; others name columns.
        rows = [replace(heading, start=moved(heading.start)) for heading in headings[begin:]]
        headings[begin:] = [h for h in rows if self.pieces[h.start] == h.title]
        begin = bisect_left(places, first, key=itemgetter(1))
        places[begin:] = [(name, moved(at)) for name, at in places[begin:]]

    def _conceal(self, element: Element) -> None:
        self.conceal("".join(element.itertext()))

    def _break(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        # Old pages separate paragraphs by two <br>.
        self._part(Gap.PARAGRAPH if self._gap is Gap.LINE else Gap.LINE)

    def _lose(self, tag: str, attributes: Mapping[str, str]) -> None:
        # An empty `alt` marks a picture as decoration, so nothing is lost.
        self._lost[tag] += tag != "img" or "alt" not in attributes
        text = attributes.get("alt", "")
        self.data(f" {text} " if len(text) > 1 else text)  # one letter is an initial

    def _skip(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Begins an element that no reader of the page sees."""
        self._lost["script"] += tag == "script"
        is_text = tag == "template"
        self.aside(tag, attributes, self._conceal if is_text else lambda _: None)

    def _take_title(self, tag: str, attributes: Mapping[str, str]) -> None:
        def take(element: Element) -> None:
            if not self.pieces:  # drawings in the page have titles too
                self.title += "".join(element.itertext())

        self.aside(tag, attributes, take)

    def _formulate(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.aside(tag, attributes, lambda element: self.data(formula(element)))

    def _open_figure(self, _tag: str, _attributes: Mapping[str, str]) -> None:
        self._figures.append(len(self.pieces))
        if self._gap is Gap.FIGURE:  # the signs of both separate them
            self._gap = Gap.NONE

    def _close_figure(self, tag: str) -> None:
        first = self._figures.pop() if self._figures else len(self.pieces)
        if len(self.pieces) > first:
            mark_figure(self.pieces, first, is_raised=tag == "sup")
            self._part(Gap.FIGURE)

    tags: ClassVar[Mapping[str, Tag]] = {
        **dict.fromkeys(_PARAGRAPHS, (Gap.PARAGRAPH, None, None)),
        **dict.fromkeys(_LINES, (Gap.LINE, None, None)),
        **dict.fromkeys(_HEADINGS, (Gap.PARAGRAPH, _start_heading, _close_heading)),
        **dict.fromkeys(_LOST, (Gap.NONE, _lose, None)),
        **dict.fromkeys(("script", "style", "template", "rp"), (Gap.NONE, _skip, None)),
        **dict.fromkeys(("thead", "tbody", "tfoot", "tr"), (Gap.LINE, _start_rows, _end_rows)),
        **dict.fromkeys(("td", "th"), (Gap.CELL, _start_cell, None)),
        **dict.fromkeys(("sup", "sub"), (Gap.NONE, _open_figure, _close_figure)),
        "table": (Gap.PARAGRAPH, _start_table, _end_table),
        "pre": (Gap.PARAGRAPH, _start_preformatted, _end_preformatted),
        "li": (Gap.LINE, None, _end_item),
        "tab": (Gap.CELL, None, None),
        "br": (Gap.NONE, _break, None),
        "title": (Gap.NONE, _take_title, None),
        "math": (Gap.NONE, _formulate, None),
        # Browsers that do not know ruby show parentheses around the reading.
        "rt": (Gap.NONE, lambda flow, *_: flow._write("("), lambda flow, _: flow._write(")")),
    }


def _is_hidden(attributes: Mapping[str, str]) -> bool:
    if "hidden" in attributes and attributes["hidden"].lower() != "until-found":
        return True
    return "style" in attributes and _NOT_SHOWN.search(attributes["style"]) is not None
