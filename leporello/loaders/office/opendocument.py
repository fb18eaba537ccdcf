"""OpenDocument texts and presentations of LibreOffice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from leporello.core.records import Document, Loss
from leporello.loaders.figures import formula
from leporello.loaders.files import ZIP, Format
from leporello.loaders.markup.xml import XmlFlow, feed
from leporello.loaders.numbering import numeral, whole
from leporello.loaders.office.archive import losses_of, members, parsed, read, unpacked
from leporello.loaders.office.parts import attribute, local_name

if TYPE_CHECKING:
    from lxml.etree import _Element


OUTLINE = "Outline"  # name of the list style of headings
_POSITION = re.compile(r"(sub|-[1-9])|super|[1-9]")
_DEEPEST = 20  # styles that inherit from each other


@dataclass(slots=True)
class OpenCounts:
    """Numbers of a list's items so far."""

    style: str  # name of the list style
    level: int = 1  # level of the current list, from 1
    # Number of the last item, by level; shared by the lists inside each other
    numbers: dict[int, int] = field(default_factory=dict)
    start: str = ""  # number of the next item as the file gives it; empty to count on

    def inner(self, style: str) -> OpenCounts:
        """Returns the numbers of a list in this list."""
        return OpenCounts(style or self.style, self.level + 1, self.numbers)


class OpenStyles:
    """Styles by name, as far as they determine text."""

    def __init__(self, *roots: _Element) -> None:
        self._styles = {attribute(e, "name") or "": e for r in roots for e in r.iter("{*}style")}
        lists = (e for r in roots for e in r.iter("{*}list-style", "{*}outline-style"))
        self._levels = {
            (attribute(style, "name") or OUTLINE, whole(attribute(level, "level"))): _attributes(
                level
            )
            for style in lists
            for level in style
        }
        self._counts: dict[str, OpenCounts] = {}  # of the last list, by its style and its id
        self._of = cache(self._properties)

    def height(self, style: str) -> str:
        """Returns `sup` for raised, `sub` for lowered text; empty for other text."""
        position = _POSITION.match(self._of(style).get("text-position", ""))
        return "" if position is None else "sub" if position[1] else "sup"

    def is_hidden(self, style: str) -> bool:
        """Returns whether text or a slide with the style is not shown."""
        properties = self._of(style)
        return properties.get("display") == "none" or properties.get("visibility") == "hidden"

    def counts(self, style: str, attributes: Mapping[str, str]) -> OpenCounts:
        """Returns the numbers of an outermost list, which may continue an earlier list."""
        earlier = self._counts.get(attributes.get("continue-list", ""))
        if attributes.get("continue-numbering") == "true":
            earlier = earlier or self._counts.get(f"style {style}")
        counts = OpenCounts(style, 1, earlier.numbers if earlier else {})
        self._counts[f"style {style}"] = counts
        if "id" in attributes:
            self._counts[attributes["id"]] = counts
        return counts

    def number(self, counts: OpenCounts, paragraph: str) -> str:
        """Counts an item, and returns its number; empty for items with bullets."""
        names = (attribute(base, "list-style-name") for base in self._line(paragraph))
        style = counts.style or next(filter(None, names), "")
        numbers, level = counts.numbers, counts.level
        following = numbers.get(level, self._first(style, level) - 1) + 1
        numbers[level] = whole(counts.start, following)
        counts.start = ""
        for deeper in [number for number in numbers if number > level]:
            del numbers[deeper]
        level_style = self._levels.get((style, level), {})
        if not level_style.get("num-format"):
            return ""
        shown = whole(level_style.get("display-levels"), 1)
        texts = []
        for outer in range(max(1, level - shown + 1), level + 1):
            form = self._levels.get((style, outer), {}).get("num-format")
            if form:
                texts.append(numeral(numbers.get(outer, self._first(style, outer)), form))
        return (
            level_style.get("num-prefix", "") + ".".join(texts) + level_style.get("num-suffix", "")
        )

    def _first(self, style: str, level: int) -> int:
        return whole(self._levels.get((style, level), {}).get("start-value"), 1)

    def _line(self, style: str) -> Iterator[_Element]:
        """Yields a style, and the styles that it inherits from."""
        for _ in range(_DEEPEST):
            if (element := self._styles.get(style)) is None:
                return
            yield element
            style = attribute(element, "parent-style-name") or ""

    def _properties(self, style: str) -> Mapping[str, str]:
        """Returns the properties that a style has or inherits."""
        properties = dict[str, str]()
        for element in reversed([*self._line(style)]):
            for of in element.iterfind("*"):
                properties |= _attributes(of)
        return properties


def _attributes(element: _Element) -> dict[str, str]:
    return {local_name(str(name)): str(value) for name, value in element.attrib.items()}


_KINDS = (b"application/vnd.oasis.opendocument.text", b"application/vnd.oasis.opendocument.presen")
_OBJECT = re.compile(r"Object \d+/content\.xml")
_EMBEDDED = {
    _OBJECT.pattern: ("embedded object", "charts are not read"),
}
_HIDDEN: Mapping[str, str] = {"hidden": ""}


class _OpenFlow(XmlFlow):
    """Writes the elements of OpenDocument, with the numbers and figures that its styles define."""

    names: ClassVar[Mapping[str, str]] = {
        "p": "p", "h": "p", "list-item": "li", "table": "table", "table-row": "tr",
        "table-cell": "td", "table-header-rows": "thead", "table-rows": "tbody",
        "line-break": "br", "tab": "tab", "image": "img", "note-citation": "sup",
        "ruby-text": "rt", "list-header": "li",
    }  # fmt: skip
    hidden: ClassVar[Mapping[str, tuple[str, str]]] = {
        "tracked-changes": ("tracked deletion", "was deleted by the author"),
        "forms": ("form", "is not read"),
        "scripts": ("macro", "macros are not run"),
    }

    def __init__(self, archive: ZipFile, styles: OpenStyles) -> None:
        super().__init__()
        self.styles = styles
        self.formulas = 0  # embedded objects that were read
        self._archive = archive
        self._slides = 0
        self._lists: list[OpenCounts] = []
        self._outline = OpenCounts(OUTLINE)
        self._is_replaced = False  # whether the picture of an object repeats what was read
        self._is_item = False  # whether the next paragraph begins an item of a list

    def start(self, tag: str, attributes: Mapping[str, str] = {}) -> None:
        local = {k.rpartition("}")[2]: v for k, v in attributes.items()} if attributes else {}
        name = tag.rpartition("}")[2]
        if not self.is_aside:
            if name == "page":
                self._slides += 1
                self.place(f"slide {self._slides}")
            elif name in ("covered-table-cell", "number"):
                self.open.append((name, name))
                self.aside(name, {}, self._take_number if name == "number" else lambda _: None)
                return
        super().start(tag, local)
        if not self.is_aside:
            self._count(name, local)

    def end(self, tag: str) -> None:
        name, _ = self.open[-1]
        super().end(tag)
        self._is_replaced = self._is_replaced and name != "frame"
        if name == "list" and self._lists and not self.is_aside:
            self._lists.pop()

    def like(self, name: str, attributes: Mapping[str, str]) -> str:
        if name == "h":
            level = attributes.get("outline-level", "1")
            return f"h{min(6, max(1, whole(level, 1)))}"
        if name == "span":
            return self.styles.height(attributes.get("style-name", "")) or "span"
        if name == "s":
            self.data(" ")
        return super().like(name, attributes)

    def given(self, like: str, attributes: Mapping[str, str]) -> Mapping[str, str]:
        is_hidden = attributes.get("display") == "none" or attributes.get("is-hidden") == "true"
        is_hidden = is_hidden or attributes.get("visibility") in ("collapse", "filter")  # a row
        if is_hidden or self.styles.is_hidden(attributes.get("style-name", "")):
            return _HIDDEN
        if like == "img" and self._is_replaced:
            return {"alt": ""}
        if like == "td":
            columns = attributes.get("number-columns-spanned", "1")
            if columns == "1":
                columns = attributes.get("number-columns-repeated", "1")
            return {"colspan": columns, "rowspan": attributes.get("number-rows-spanned", "1")}
        return super().given(like, attributes)

    def _take_number(self, element: Element) -> None:
        """Writes a number that the file contains as text, unless its style has given one."""
        if not self.is_labelled:
            self.label("".join(element.itertext()).strip())

    def _count(self, name: str, attributes: Mapping[str, str]) -> None:
        """Writes the number of an item or heading before its first text."""
        style = attributes.get("style-name", "")
        if name == "list":
            self._is_item = False  # an item that only contains a list has no number
            outer = self._lists[-1] if self._lists else None
            counts = self.styles.counts(style, attributes) if outer is None else outer.inner(style)
            self._lists.append(counts)
        elif name in ("list-item", "list-header"):
            self._is_item = name == "list-item"
            if self._lists:
                self._lists[-1].start = attributes.get("start-value", "")
        elif name in ("p", "h") and self._lists:
            if self._is_item:
                self.label(self.styles.number(self._lists[-1], style))
            self._is_item = False
        elif name == "h" and attributes.get("is-list-header") != "true":
            self._outline.level = whole(attributes.get("outline-level"), 1)
            self._outline.start = attributes.get("start-value", "")
            self.label(self.styles.number(self._outline, ""))
        elif name == "object":
            self._read_object(attributes.get("href", ""))

    def _read_object(self, href: str) -> None:
        name = f"{href.removeprefix('./')}/content.xml"
        if _OBJECT.fullmatch(name):
            root = parsed(read(self._archive, name))
            if str(root.tag).endswith("}math"):
                self.data(formula(root))
                self.formulas += 1
                self._is_replaced = True


@dataclass(frozen=True)
class OpenDocument(Format):
    """OpenDocument texts and presentations (odt, odp): headings, lists, tables, notes, comments."""

    suffixes = (".odt", ".ott", ".odp", ".otp")
    begins = ZIP
    marked = True

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content suffices
        """Returns whether the file is a zip archive that begins with an OpenDocument type."""
        return any(kind in head[:200] for kind in _KINDS) and bool(members(head))

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text; places of a presentation are local `slide 3`."""
        with unpacked(data, path) as archive:
            content = archive.read("content.xml")
            styles = OpenStyles(parsed(read(archive, "styles.xml")), parsed(content))
            flow = _OpenFlow(archive, styles)
            meta = parsed(read(archive, "meta.xml"))
            flow.title = "".join(e.text or "" for e in meta.iter("{*}title"))
            feed(content, flow)
            for loss in losses_of(archive.namelist(), _EMBEDDED):
                count = loss.count - flow.formulas * (loss.what == "embedded object")
                flow.losses += [Loss(loss.what, loss.why, count=count)] if count else []
        return flow.extracted()
