"""OpenDocument texts and presentations of LibreOffice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.loaders.files import ZIP, Format
from leporello.loaders.markup.xml import XmlFlow, feed
from leporello.loaders.office.archive import losses_of, members, parsed, read, unpacked
from leporello.text.outline import Extracted

_KINDS = (b"application/vnd.oasis.opendocument.text", b"application/vnd.oasis.opendocument.presen")
_EMBEDDED = {
    r"Object \d+/content\.xml": ("embedded object", "charts and formulas are not read"),
    r"(Basic|Scripts)/.*\.(xml|py|js)": ("macro", "macros are not run"),
}


class _OpenFlow(XmlFlow):
    names: ClassVar[Mapping[str, str]] = {
        "p": "p", "list-item": "li", "table": "table", "table-row": "tr", "table-cell": "td",
        "line-break": "br", "tab": "td", "image": "img",
    }  # fmt: skip
    hidden: ClassVar[Mapping[str, tuple[str, str]]] = {
        "tracked-changes": ("tracked deletion", "was deleted by the author"),
        "forms": ("form", "is not read"),
        "scripts": ("macro", "macros are not run"),
    }
    slides = 0

    def like(self, name: str, attributes: Mapping[str, str]) -> str:
        if name == "page":
            self.slides += 1
            self.place(f"slide {self.slides}")
        if name == "h":
            levels = (v for k, v in attributes.items() if k.endswith("}outline-level"))
            return f"h{min(6, int(next(levels, '1')))}"
        if name == "s":
            self.data(" ")
        # A paragraph in a cell would divide the row with an empty line.
        in_cell = any(like == "td" for _, like in self.open)
        return "div" if name == "p" and in_cell else super().like(name, attributes)


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
        """Returns the text; places of a presentation are named `slide 3`.

        Raises:
            UserError: The file is corrupt or locked.
        """
        flow = _OpenFlow()
        with unpacked(data, path) as archive:
            meta = parsed(read(archive, "meta.xml"))
            flow.title = "".join(e.text or "" for e in meta.iter("{*}title"))
            flow.losses += losses_of(archive.namelist(), _EMBEDDED)
            feed(archive.read("content.xml"), flow)
        return flow.extracted()
