"""OpenDocument texts and presentations of LibreOffice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from xml.etree.ElementTree import Element
from zipfile import ZipFile

from leporello.core.records import Loss
from leporello.loaders.figures import formula
from leporello.loaders.files import ZIP, Format
from leporello.loaders.markup.xml import XmlFlow, feed
from leporello.loaders.numbering import whole
from leporello.loaders.office.archive import losses_of, members, parsed, read, unpacked
from leporello.loaders.office.open_styles import OUTLINE, OpenCounts, OpenStyles
from leporello.text.outline import Extracted

_KINDS = (b"application/vnd.oasis.opendocument.text", b"application/vnd.oasis.opendocument.presen")
_OBJECT = re.compile(r"Object \d+/content\.xml")
_EMBEDDED = {
    _OBJECT.pattern: ("embedded object", "charts are not read"),
    r"(Basic|Scripts)/.*\.(xml|py|js)": ("macro", "macros are not run"),
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

    def __init__(self, archive: ZipFile) -> None:
        super().__init__()
        self.styles = OpenStyles()
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
            self.styles.define(name, local)
            if name == "page":
                self._start_slide()
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

    def _start_slide(self) -> None:
        self._slides += 1
        self.place(f"slide {self._slides}")

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

    suffixes: ClassVar[tuple[str, ...]] = (".odt", ".ott", ".odp", ".otp")
    begins: ClassVar[re.Pattern[bytes]] = ZIP
    marked: ClassVar[bool] = True

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content suffices
        """Returns whether the file is a zip archive that begins with an OpenDocument type."""
        return any(kind in head[:200] for kind in _KINDS) and bool(members(head))

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; places of a presentation are local `slide 3`.

        Raises:
            UserError: The file is corrupt or locked.
        """
        with unpacked(data, path) as archive:
            flow = _OpenFlow(archive)
            meta = parsed(read(archive, "meta.xml"))
            flow.title = "".join(e.text or "" for e in meta.iter("{*}title"))
            flow.styles.read(parsed(read(archive, "styles.xml")))
            feed(archive.read("content.xml"), flow)
            for loss in losses_of(archive.namelist(), _EMBEDDED):
                count = loss.count - flow.formulas * (loss.what == "embedded object")
                flow.losses += [Loss(loss.what, loss.why, count=count)] if count else []
        return flow.extracted()
