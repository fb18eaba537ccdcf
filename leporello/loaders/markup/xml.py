"""XML: articles (JATS), editions (TEI), books (DocBook, FictionBook), and all other XML."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html.entities import html5
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, TypeAlias
from xml.etree.ElementTree import Element

from leporello.core.environment.input_limits import XML_DEPTH
from leporello.core.records import Document, Loss
from leporello.loaders.figures import formula
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow, Gap, Tag
from leporello.loaders.html import Html
from leporello.loaders.markup.latex_grammar import formula as latex_formula
from leporello.loaders.numbering import Counter, whole
from leporello.loaders.text import decoded

_BEGINS = re.compile(
    rb"\A(?:(?:\xef\xbb\xbf)?\s*(?:<\?xml\s|<!DOCTYPE\s+(?!html))|<[A-Za-z][\w.-]*\s+xmlns)"
)
_ENTITY = re.compile(rb"<!\[CDATA\[.*?(?:\]\]>|\Z)|&([A-Za-z][\w.-]*);", re.S)
_DECLARED, _WITHIN = re.compile(rb"<!ENTITY\s+([A-Za-z][\w.-]*)\s"), 2**16  # bytes
_PART = 2**16  # bytes
_DECLARATION = re.compile(r"\A\s*<\?xml\s[^>]*>")
_ENCODING = re.compile(rb"""\A\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)""")
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
    "|inline-formula|alternatives|styled-content|named-content|surname|given-names|year|volume|issue|[fl]page|source"
)
_NO_DIGITS = re.compile(r"[^0-9]")
_DATE = ("year", "month", "day", "season", "string-date")
_PARTED = {"surname", "given-names", "year", "volume", "issue", "fpage", "lpage", "source"}
_AS = {
    **dict.fromkeys(("p", "para", "simpara", "lg", "subtitle", "formalpara", "ref", "bibl"), "p"),
    **dict.fromkeys(("row", "tr"), "tr"),
    **dict.fromkeys(("cell", "entry", "td"), "td"),
    **dict.fromkeys(("lb", "br", "break"), "br"),
    **dict.fromkeys(("table", "informaltable"), "table"),
    **dict.fromkeys(("table-wrap", "figure", "fig", "disp-quote"), "figure"),
    **dict.fromkeys(("graphic", "inline-graphic", "media", "imagedata", "image"), "img"),
    **dict.fromkeys(("sup", "superscript"), "sup"),
    **dict.fromkeys(("sub", "subscript"), "sub"),
    **dict.fromkeys(("list", "orderedlist", "itemizedlist", "procedure", "ol", "ul"), "ul"),
    **{name: name for name in ("th", "thead", "tbody", "tfoot", "math", "tex-math", "rt")},
}
# Signs and environments of LaTeX that only arrange a formula.
_DISPLAY = re.compile(
    r"\\(?:begin|end)\{(?:eqnarray|align(?:ed)?|equation|split|gather)\*?\}|(?<!\\)&"
)
_ITEMS = {"list-item", "listitem", "item", "step", "li"}
# Forms of numbers, by the values of attributes that mark a list as numbered.
_ORDERED = {
    **dict.fromkeys(("order", "ordered", "numbered", "arabic", "orderedlist", "procedure"), "1"),
    **dict.fromkeys(("alpha-lower", "loweralpha"), "a"),
    **dict.fromkeys(("alpha-upper", "upperalpha"), "A"),
    **dict.fromkeys(("roman-lower", "lowerroman"), "i"),
    **dict.fromkeys(("roman-upper", "upperroman"), "I"),
    "ol": "1",
}

Rewrite: TypeAlias = Callable[[Element], None]


def _texts(element: Element, *names: str) -> list[str]:
    """Returns the texts of inner elements by their names; numbers have two digits or more."""
    texts = ("".join(inner.itertext()).strip() for n in names for inner in element.iter(n))
    return [text.zfill(2) if text.isdigit() else text for text in texts if text]


class XmlFlow(Flow):
    """Writes XML elements as the most similar HTML elements; target of an lxml parser."""

    # Names of HTML elements, by names of XML elements without namespaces
    names: ClassVar[Mapping[str, str]] = {}
    # Losses and reasons, by names of elements whose text is not written
    hidden: ClassVar[Mapping[str, tuple[str, str]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []  # XML and HTML names of open elements

    def start(self, tag: str, attributes: Mapping[str, str] = _NONE) -> None:
        """Begins an element, or hides it."""
        name = tag.rpartition("}")[2]
        if len(self.open) > XML_DEPTH:  # libxml2 no longer limits the depth
            raise RecursionError
        if self.is_aside:
            self.open.append((name, name))
            super().start(name, attributes)
        elif then := self.rewritten(name, attributes):
            self.open.append((name, name))
            self.aside(name, _NONE, then)
        else:
            like = self.like(name, attributes)
            self.open.append((name, like))
            super().start(like, self.given(like, attributes) if attributes else _NONE)

    def end(self, tag: str) -> None:  # noqa: ARG002 -- elements end in order
        """Ends an element."""
        super().end(self.open.pop()[1])

    def given(self, like: str, attributes: Mapping[str, str]) -> Mapping[str, str]:  # noqa: ARG002 -- for others
        """Returns the attributes of the HTML element that `like` returned."""
        return {"alt": attributes["alt"]} if "alt" in attributes else _NONE

    def rewritten(self, name: str, attributes: Mapping[str, str]) -> Rewrite | None:  # noqa: ARG002 -- for others
        """Returns a function that is called with the complete element; None to write it."""
        return partial(self._lose_text, *self.hidden[name]) if name in self.hidden else None

    def _lose_text(self, what: str, why: str, element: Element) -> None:
        size = sum(map(len, element.itertext()))
        self.losses.append(Loss(what, why, characters=size))

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
        self._lists: list[Counter] = []
        self._number = ""  # of the item that begins, unless it has a label
        self._has_formula = False  # whether one of some alternatives is written

    def start(self, tag: str, attributes: Mapping[str, str] = _NONE) -> None:
        name = tag.rpartition("}")[2]
        if self._number and name != "label":
            self.label(self._number)
        self._number = ""
        if name == "alternatives":
            self._has_formula = False
        super().start(tag, attributes)
        if not self.is_aside:
            self._count(name, attributes)
            if attributes and self.open[0][0] not in _KNOWN:
                values = (f"{k.rpartition('}')[2]}={v}" for k, v in attributes.items())
                self.data(" ".join(values) + " ")
        self._has_text.append(False)

    def rewritten(self, name: str, attributes: Mapping[str, str]) -> Rewrite | None:
        parent = self.open[-1][0] if self.open else ""
        if name == "name" and parent == "contrib":
            return lambda e: self.element("div", " ".join(_texts(e, "given-names", "surname")))
        if name == "pub-date" or (name == "date" and parent in ("history", "event")):
            kind = attributes.get("date-type") or attributes.get("pub-type") or name
            return lambda e: self.element("div", f"{kind}: {'-'.join(_texts(e, *_DATE))}")
        return super().rewritten(name, attributes)

    def end(self, tag: str) -> None:
        has_text = self._has_text.pop()
        name, like = self.open[-1]
        is_label = name == "label" and has_text and self.open[0][0] in _KNOWN and not self.is_aside
        super().end(tag)
        if like == "ul" and self._lists and not self.is_aside:
            self._lists.pop()
        if is_label:
            self.join_label()
        if tag in _PARTED:  # no white space is between them
            self.data(" ")

    def data(self, text: str) -> None:
        if text.strip() and self._has_text:
            self._has_text[-1] = True
            if self._number:
                self.label(self._number)
                self._number = ""
        super().data(text)

    def given(self, like: str, attributes: Mapping[str, str]) -> Mapping[str, str]:
        if like not in ("td", "th"):
            return super().given(like, attributes)
        columns = attributes.get("colspan") or attributes.get("cols", "1")
        # Names of columns of DocBook, which nearly always end with their numbers.
        first, last = (_NO_DIGITS.sub("", attributes.get(k, "")) for k in ("namest", "nameend"))
        if whole(last) > whole(first):
            columns = str(whole(last) - whole(first) + 1)
        rows = attributes.get("rowspan") or attributes.get("rows", "1")
        if "morerows" in attributes:
            rows = str(whole(attributes["morerows"]) + 1)
        return {"colspan": columns, "rowspan": rows}

    def _count(self, name: str, attributes: Mapping[str, str]) -> None:
        """Begins a list or an item."""
        like = self.open[-1][1]
        if like == "ul":
            kinds = (attributes.get(k, "") for k in ("list-type", "type", "rend", "numeration"))
            form = next((_ORDERED[k] for k in (*kinds, name) if k in _ORDERED), "")
            self._lists.append(Counter(whole(attributes.get("startingnumber"), 1), form))
        elif like == "li" and self._lists:
            number = attributes.get("n") or attributes.get("override")
            self._lists[-1].following = whole(number, self._lists[-1].following)
            self._number = self._lists[-1].count()

    def like(self, name: str, attributes: Mapping[str, str]) -> str:
        parent = self.open[-1][0] if self.open else ""
        if name == "pb" and (number := attributes.get("n")):
            self.place(f"p. {number}")
        if name in ("title", "head") and (_CONTAINERS.fullmatch(parent) or parent == "titleStmt"):
            inner = (o for o, _ in self.open if _CONTAINERS.fullmatch(o) and o not in _OUTER)
            return f"h{min(6, max(1, sum(1 for _ in inner)))}"
        if name == "article-title" and parent == "title-group":
            return "h1"
        if name in self.names or self._is_raised(name, attributes):
            return self.names.get(name, "sup")
        if name in _ITEMS and any(like == "ul" for _, like in self.open[-1:]):
            return "li"
        if name == "label" and self.open and self.open[0][0] in _KNOWN and parent != "li":
            return "p" if self.open[-1][1] != "li" else "span"
        mixed = bool(self._has_text) and self._has_text[-1]
        return "span" if mixed or _INLINE.fullmatch(name) else "div"

    def _is_raised(self, name: str, attributes: Mapping[str, str]) -> bool:
        """Returns whether an element is raised text, such as the mark of a note after a digit."""
        if name == "xref" and attributes.get("ref-type") in ("fn", "table-fn"):
            return self._gap is Gap.NONE and "".join(self.pieces[-1:])[-1:].isdigit()
        return name == "hi" and "sup" in attributes.get("rend", "")

    def _write_formula(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Writes a formula, unless it repeats one in another notation."""

        def write(element: Element) -> None:
            text = formula(element) if tag == "math" else _plain("".join(element.itertext()))
            self.data("" if is_repeated else text)

        is_alternative = [name for name, _ in self.open[-2:-1]] == ["alternatives"]
        is_repeated = is_alternative and self._has_formula
        self._has_formula = True
        self.aside(tag, attributes, write)

    tags: ClassVar[Mapping[str, Tag]] = {
        **Flow.tags,
        **dict.fromkeys(("math", "tex-math"), (Gap.NONE, _write_formula, None)),
    }


def _plain(source: str) -> str:
    """Returns a formula of LaTeX as text; its source, with dollar signs, if commands remain."""
    source = source.partition(r"\begin{document}")[2] or source
    source = _DISPLAY.sub(" ", source.partition(r"\end{document}")[0].replace(r"\\", "; "))
    text = latex_formula(source.strip().strip("$"))
    return f"${text}$" if "\\" in text else text


@dataclass(frozen=True)
class Xml(Format):
    """XML: sections, titles, tables and references of JATS, TEI, DocBook and FictionBook.

    Other XML becomes text and attributes, with one line per element.
    """

    suffixes = (".xml", ".nxml", ".tei", ".fb2", ".dbk", ".rss", ".atom")
    begins = _BEGINS

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text; places are pages, `p. 3`, where a TEI edition marks them.

        Raises UserError if the file is not well-formed XML, or its encoding is unknown.
        """
        if Html.recognises(data, path):
            return Html().extract(data, path)
        flow = _AnyXml()
        declared = _ENCODING.match(data)
        # A single byte outside the declared encoding makes libxml2 refuse the file.
        raw = decoded(data, path, declared[1].decode() if declared else "")
        feed(_DECLARATION.sub("", raw.text, 1).encode(), flow)
        flow.losses += raw.losses
        extracted = flow.extracted()
        title = extracted.sections[0].title if extracted.sections else ""
        return replace(extracted, title=title, notes=raw.notes)


def feed(data: bytes, flow: XmlFlow) -> None:
    """Parses XML into a flow; entities in other files are not fetched.

    Entities of HTML are resolved; unknown entities are written unchanged and reported as losses.
    """
    from lxml.etree import XMLParser

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
