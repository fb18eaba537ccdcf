"""HTML: its text as a browser would break it into lines, its headings as sections."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.loaders.files import Format
from leporello.loaders.text import decode
from leporello.text.outline import Extracted, Heading, outline

__all__ = ["Html"]

_DECLARED = re.compile(
    rb"""<\?xml[^>]*?encoding\s*=\s*["']([\w.:-]+)|<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<!--.{0,999}?-->\s*)?<(?:!doctype\s+html|html)[\s>]", re.I | re.S
)
_DECLARED_WITHIN = 4096  # bytes; browsers look at the first 1024
# What browsers mean by names that say less (https://encoding.spec.whatwg.org/#names-and-labels).
_MEANT = {
    "ascii": "cp1252",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "utf-16": "utf-8",  # a file whose declaration reads as ASCII cannot be UTF-16
    "utf-16-be": "utf-8",
    "utf-16-le": "utf-8",
}

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


@dataclass(frozen=True)
class Html(Format):
    """HTML: its text as a browser would break it into lines, its headings as sections."""

    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm", ".xhtml")

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content says it
        """Returns whether the file begins with HTML's doctype or root element."""
        return _BEGINS.match(head) is not None

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text between the tags; scripts and styles are left out.

        White space is collapsed except in `<pre>`; blocks stand on lines of their own, paragraphs
        with an empty line between them; table cells are parted by tabs.

        Raises:
            UserError: The charset declared is unknown, or the bytes are not in it.
        """
        from lxml.etree import HTMLParser

        page = _HtmlText()
        parser = HTMLParser(
            target=page,  # type: ignore[arg-type]  # its stubs ask for more than lxml
            huge_tree=True,  # otherwise text that is nested too deep is lost
        )
        parser.feed(decode(data, path, _charset(data, path)) or " ")
        parser.close()
        text = "".join(page.pieces)
        return Extracted(text, page.title, outline(page.headings, len(text)))


def _charset(data: bytes, path: Path) -> str:
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    if not declared:
        return "utf-8"
    name = (declared[1] or declared[2]).decode("ascii")
    try:
        codec = codecs.lookup(name).name
        b"a".decode(codec, "ignore")  # raises for codecs that are no charsets, such as `hex`
    except LookupError:
        raise UserError(
            f"{path}: declares the charset {name!r}, which is unknown; convert the file to UTF-8"
            " and mend its <meta charset>"
        ) from None
    return _MEANT.get(codec, codec)


class _Gap(IntEnum):
    """What parts a text from the one before it; the strongest asked for is written."""

    NONE = 0
    SPACE = 1
    CELL = 2
    LINE = 3
    PARAGRAPH = 4

    @property
    def text(self) -> str:
        return ("", " ", "\t", "\n", "\n\n")[self]


class _HtmlText:
    """Writes texts and gaps in order, so that every offset is exact by construction.

    The methods without an underscore are those that lxml calls, as the document goes.

    Attributes:
        pieces: Parts of the text so far: a gap, a text, a gap, a text.
        title: Title of the page.
        headings: Headings in document order.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.title = ""
        self.headings: list[Heading] = []
        self._length = 0
        self._gap = _Gap.NONE
        self._unseen: list[str] = []  # the unseen elements that are open
        self._preformatted = 0  # how many <pre> are open
        self._heading = 0  # the level of the heading that is open
        self._heading_from = 0  # how many pieces stood before it

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:  # noqa: ARG002 -- lxml passes them
        """Parts what follows from what came before."""
        if tag in _UNSEEN:
            self._unseen.append(tag)
        elif tag == "br":
            self._part(_Gap.PARAGRAPH if self._gap is _Gap.LINE else _Gap.LINE)
        elif gap := _gap_at(tag):
            self._open_block(tag, gap)

    def end(self, tag: str) -> None:
        """Parts what follows from the element that ends."""
        if tag in _UNSEEN:
            self._unseen.remove(tag)
        elif tag in _HEADINGS:
            self._close_heading()
        self._preformatted -= tag == "pre"
        if tag not in _CELLS:
            self._part(_gap_at(tag))

    def data(self, text: str) -> None:
        """Writes the text, its white space collapsed unless it is preformatted."""
        if self._unseen:
            if self._unseen == ["title"] and not self.pieces:
                self.title += text
        elif self._preformatted:
            self._write(text)
        else:
            self._write_collapsed(_BLANKS.sub(" ", text))

    def close(self) -> None:
        """Nothing is left to do at the end of the page."""

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
        """Records the heading that is open, if one is and it has text."""
        if self._heading and (parts := self.pieces[self._heading_from + 1 :]):  # after its gap
            text = "".join(parts)
            start = self._length - len(text)
            self.headings.append(Heading(" ".join(text.split()), start, self._heading))
        self._heading = 0


@lru_cache
def _gap_at(tag: str) -> _Gap:
    if _PARAGRAPHS.fullmatch(tag):
        return _Gap.PARAGRAPH
    if _LINES.fullmatch(tag):
        return _Gap.LINE
    return _Gap.CELL if tag in _CELLS else _Gap.NONE
