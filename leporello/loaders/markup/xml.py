"""XML: articles (JATS), editions (TEI), books (DocBook, FictionBook), and all other XML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html.entities import html5
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from leporello.core.environment.input_limits import XML_DEPTH
from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow
from leporello.loaders.html import Html
from leporello.text.outline import Extracted

_BEGINS = re.compile(
    rb"\A(?:(?:\xef\xbb\xbf)?\s*(?:<\?xml\s|<!DOCTYPE\s+(?!html))|<[A-Za-z][\w.-]*\s+xmlns)"
)
_ENTITY = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|&([A-Za-z][\w.-]*);", re.S)
_DECLARED, _WITHIN = re.compile(rb"<!ENTITY\s+([A-Za-z][\w.-]*)\s"), 2**16  # bytes
_PART = 2**16  # bytes
_NONE: Mapping[str, str] = MappingProxyType({})
_KNOWN = {"article", "TEI", "teiCorpus", "book", "chapter", "section", "FictionBook", "html"}
_CONTAINERS = re.compile(
    "article|book|part|chapter|sect?(?:ion|[1-5])?|div[1-7]?|appendix|app|abstract|ack|ref-list"
    "|body|front|back|preface|bibliography|boxed-text"
)
_OUTER = {"article", "book", "body", "front", "back"}  # open no level of headings
_INLINE = re.compile(
    "a|b|i|u|bold|italic|em(?:phasis|ph)?|strong|strike|su[bp](?:erscript|script)?|sc|monospace"
    "|x?ref|ext-link|link|hi|term|name|persName|placeName|date|span|email|uri|code|foreign|quote|q"
    "|tex-math|styled-content|named-content|surname|given-names|year|volume|issue|[fl]page|source"
)
_PARTED = {"surname", "given-names", "year", "volume", "issue", "fpage", "lpage", "source"}
_AS = {
    **dict.fromkeys(("p", "para", "simpara", "lg", "subtitle", "formalpara", "ref", "bibl"), "p"),
    **dict.fromkeys(("row", "tr"), "tr"),
    **dict.fromkeys(("cell", "entry", "td", "th"), "td"),
    **dict.fromkeys(("lb", "br", "break"), "br"),
    **dict.fromkeys(("table", "table-wrap", "figure", "fig", "list", "disp-quote"), "table"),
    **dict.fromkeys(("graphic", "inline-graphic", "media", "imagedata", "image"), "img"),
}


class XmlFlow(Flow):
    """Writes XML elements as the most similar HTML elements; target of an lxml parser.

    Attributes:
        names: Names of HTML elements, by names of XML elements without namespaces.
        hidden: Losses and reasons, by names of elements whose text is not written.
    """

    names: ClassVar[Mapping[str, str]] = {}
    hidden: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []  # XML and HTML names of open elements
        self._hidden: list[str] = []
        self._size = 0  # characters that were hidden

    def start(self, tag: str, attributes: Mapping[str, str] = _NONE) -> None:
        """Begins an element, or hides it."""
        name = tag.rpartition("}")[2]
        if len(self.open) + len(self._hidden) > XML_DEPTH:  # libxml2 no longer limits the depth
            raise RecursionError
        if self._hidden or name in self.hidden:
            self._hidden.append(name)
            return
        like = self.like(name, attributes)
        self.open.append((name, like))
        super().start(like, {"alt": attributes["alt"]} if "alt" in attributes else {})

    def end(self, tag: str) -> None:  # noqa: ARG002 -- elements end in order
        """Ends an element."""
        if not self._hidden:
            super().end(self.open.pop()[1])
            return
        name = self._hidden.pop()
        if not self._hidden:
            self.losses.append(Loss(*self.hidden[name], characters=self._size))
            self._size = 0

    def data(self, text: str) -> None:
        """Writes text, or counts hidden text."""
        if self._hidden:
            self._size += len(text)
        else:
            super().data(text)

    def like(self, name: str, attributes: Mapping[str, str]) -> str:  # noqa: ARG002 -- for others
        """Returns the name of the most similar HTML element."""
        return self.names.get(name, "span")


class _AnyXml(XmlFlow):
    """Guesses similar HTML elements from common names."""

    names = _AS
    hidden: ClassVar[Mapping[str, tuple[str, str]]] = {
        "binary": ("image", "images are not read"),
        "object-id": ("identifier", "is not text"),
    }

    def __init__(self) -> None:
        super().__init__()
        self._has_text: list[bool] = []  # whether each open element directly contains text

    def start(self, tag: str, attributes: Mapping[str, str] = _NONE) -> None:
        super().start(tag, attributes)
        # Unknown XML often has its data in attributes; known formats have layout there.
        if attributes and not self._hidden and self.open[0][0] not in _KNOWN:
            values = (f"{k.rpartition('}')[2]}={v}" for k, v in attributes.items())
            self.data(" ".join(values) + " ")
        self._has_text.append(False)

    def end(self, tag: str) -> None:
        self._has_text.pop()
        super().end(tag)
        if tag in _PARTED:  # no white space is between them
            self.data(" ")

    def data(self, text: str) -> None:
        if text.strip() and self._has_text:
            self._has_text[-1] = True
        super().data(text)

    def like(self, name: str, attributes: Mapping[str, str]) -> str:
        parent = self.open[-1][0] if self.open else ""
        if name == "pb" and (number := attributes.get("n")):
            self.place(f"p. {number}")
        if name in ("title", "head") and (_CONTAINERS.fullmatch(parent) or parent == "titleStmt"):
            inner = (o for o, _ in self.open if _CONTAINERS.fullmatch(o) and o not in _OUTER)
            return f"h{min(6, max(1, sum(1 for _ in inner)))}"
        if name == "article-title" and parent == "title-group":
            return "h1"
        if name in self.names:
            return self.names[name]
        # An element within text is a part of its sentence, so it gets no line of its own.
        mixed = bool(self._has_text) and self._has_text[-1]
        return "span" if mixed or _INLINE.fullmatch(name) else "div"


@dataclass(frozen=True)
class Xml(Format):
    """XML: sections, titles, tables and references of JATS, TEI, DocBook and FictionBook.

    Other XML becomes text and attributes, with one line per element.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".xml", ".nxml", ".tei", ".fb2", ".dbk", ".rss", ".atom")
    begins: ClassVar[re.Pattern[bytes]] = _BEGINS

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; places are pages, `p. 3`, where a TEI edition marks them.

        Raises:
            UserError: The file is not well-formed XML.
        """
        if Html.recognises(data, path):
            return Html().extract(data, path)
        flow = _AnyXml()
        feed(data, flow)
        extracted = flow.extracted()
        title = extracted.sections[0].title if extracted.sections else ""
        return replace(extracted, title=title)


def feed(data: bytes, flow: XmlFlow) -> None:
    """Parses XML into a flow; entities in other files are not fetched.

    Entities of HTML are resolved; unknown entities are written unchanged and reported as losses.
    """
    from lxml.etree import XMLParser

    # HTML entities are common in XML that never declares them, and libxml2 would stop there.
    declared = {b"amp", b"lt", b"gt", b"quot", b"apos", *_DECLARED.findall(data, 0, _WITHIN)}

    def resolved(match: re.Match[bytes]) -> bytes:
        if not match[1] or match[1] in declared:
            return match[0]
        name = match[1].decode()
        if characters := html5.get(f"{name};"):
            return "".join(f"&#{ord(c)};" for c in characters).encode()
        flow.losses.append(Loss("entity", f"&{name}; is not defined, and was copied unchanged"))
        return b"&amp;" + match[0][1:]

    # libxml2 limits depth, text nodes and the growth of entities, unless huge_tree is set.
    parser = XMLParser(target=flow, no_network=True, load_dtd=False, resolve_entities="internal")  # type: ignore[arg-type]  # its stubs ask for more than lxml
    data = _ENTITY.sub(resolved, data)
    for start in range(0, len(data), _PART):  # lxml refuses 10 MB at once
        parser.feed(data[start : start + _PART])
    parser.close()
