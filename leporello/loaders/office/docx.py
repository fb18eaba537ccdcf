"""Word: the body, then notes and comments."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss
from leporello.loaders.flow import Flow
from leporello.loaders.office.archive import (
    ArchiveFormat,
    Element,
    parsed,
    title_of,
    unpacked,
)
from leporello.loaders.office.docx_body import Body
from leporello.loaders.office.parts import OfficeParts

_MOST_TAGS = 4_000_000  # each takes some 500 bytes of memory while it is read
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


@dataclass(frozen=True)
class Docx(ArchiveFormat):
    """Word (docx): paragraphs, headings, lists, tables, notes, comments and text boxes.

    Tracked insertions are read as if accepted; deletions are losses.
    """

    suffixes = (".docx", ".docm", ".dotx")
    member = "word/document.xml"

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text, with notes and comments at the end."""
        with unpacked(data, path) as archive:
            source = archive.read("word/document.xml")
            if (tags := source.count(b"<w:")) > _MOST_TAGS:
                raise UserError(f"{path}: has {tags:,} elements, too many; divide it")
            root = parsed(source)
            parts, flow = OfficeParts(archive), Flow()
            body = Body(parts, flow, "word/document.xml")
            body.write(root)
            body.write_notes()
            flow.losses += parts.losses
            flow.losses += (*_deleted(root), *_running(parts))
            title = title_of(archive)
        extracted = flow.extracted()
        sections = extracted.sections
        first = sections[0].title if sections and not sections[0].start else ""
        return replace(extracted, title=title or first)


def _deleted(body: Element) -> Iterator[Loss]:
    texts = [element.text or "" for element in body.iter(f"{_WORD}delText")]
    if texts:
        size = sum(map(len, texts))
        yield Loss("tracked deletion", "was deleted by the author", "", size, len(texts))


def _running(parts: OfficeParts) -> Iterator[Loss]:
    """Yields losses of page headers and footers, which are furniture."""
    for name in parts.archive.namelist():
        if match := re.fullmatch(r"word/(header|footer)\d*\.xml", name):
            text = "".join(e.text or "" for e in parts.root(name, match[1]).iter(f"{_WORD}t"))
            if text.strip():
                why = f"is on every page: {text[:80]}"
                yield Loss(match[1], why, "", len(text), furniture=True)
