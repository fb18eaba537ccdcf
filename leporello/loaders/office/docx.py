"""Word: mammoth converts it to HTML, which the HTML loader reads."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.html import Html
from leporello.loaders.office.archive import ArchiveFormat, losses_of, parsed, read, unpacked
from leporello.text.outline import Extracted

if TYPE_CHECKING:
    from zipfile import ZipFile

    from lxml.etree import _Element

_STYLES = """
comment-reference => sup
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BACK = re.compile(r' ?<a href="#(?:footnote|endnote|comment)-ref-[^"]*">↑</a>')
_CELL = re.compile(r"(?<=<td>)<p>|</p>(?=</td>)|(?<=<th>)<p>|</p>(?=</th>)")
# mammoth parses by minidom: 0.3 s for a file, 1.2 MB of text a second (decision 35).
_MOST_TAGS = 4_000_000  # each takes some 500 bytes of memory while it is read
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_SIGNS = {"den": "/", "sup": "^", "sub": "_"}  # signs before parts of a formula
_EMBEDDED = {
    r"word/charts/chart\d": ("chart", "charts and their figures are not read"),
    r"word/embeddings/": ("embedded object", "is not read; save it as a separate file"),
    r"word/diagrams/data": ("diagram", "SmartArt is not read"),
    r"word/vbaProject": ("macro", "macros are not run"),
}


@dataclass(frozen=True)
class Docx(ArchiveFormat):
    """Word (docx): paragraphs, headings, lists, tables, notes, comments and text boxes.

    Tracked insertions are read as if accepted; deletions are losses.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".docx", ".docm", ".dotx")
    member: ClassVar[str] = "word/document.xml"

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text, with notes and comments at the end.

        Raises:
            UserError: The file is corrupt, locked, or too large.
        """
        import mammoth

        with unpacked(data, path) as archive:
            source = archive.read("word/document.xml")
            # Counted in the bytes, before a parser makes objects of them.
            if (tags := source.count(b"<w:")) > _MOST_TAGS:
                raise UserError(f"{path}: has {tags:,} elements, too many; divide it")
            body = parsed(source)
            losses = (*_deleted(body), *_running(archive))
            data = _with_formulas(archive, body) or data
            embedded = losses_of(archive.namelist(), _EMBEDDED)
            title = title_of(archive)
            converted: Any = mammoth.convert_to_html(
                BytesIO(data),
                style_map=_STYLES,
                # Otherwise mammoth writes each picture as base64 into the HTML.
                convert_image=mammoth.images.img_element(lambda _: {}),
                # A document from elsewhere could name any file of this machine as its picture.
                external_file_access=False,
            )
        # Paragraphs within cells would break the row, and each note would end in an arrow.
        page = _CELL.sub("", _BACK.sub("", converted.value))
        extracted = Html().extract(page.encode(), path)
        sections = extracted.sections
        first = sections[0].title if sections and not sections[0].start else ""
        losses = (*extracted.losses, *losses, *embedded)
        return replace(extracted, title=title or first, losses=losses)


def title_of(archive: ZipFile) -> str:
    """Returns the title in an Office file's properties; may be empty."""
    properties = parsed(read(archive, "docProps/core.xml"))
    return properties.findtext("{http://purl.org/dc/elements/1.1/}title") or ""


def _with_formulas(archive: ZipFile, body: _Element) -> bytes:
    """Returns the file with formulas as text, which mammoth skips; empty without formulas."""
    from lxml.etree import SubElement, tostring

    formulas = [*body.iter(f"{_MATH}oMath")]
    for formula in formulas:
        parts = ((e.tag.removeprefix(_MATH), e.text or "") for e in formula.iter(f"{_MATH}*"))
        text = "".join(_SIGNS.get(name, text if name == "t" else "") for name, text in parts)
        tail, formula.tail = formula.tail, None
        formula.clear()
        formula.tag, formula.tail = f"{_WORD}r", tail
        SubElement(formula, f"{_WORD}t").text = text
    if not formulas:
        return b""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as copy:
        for name in archive.namelist():
            is_body = name == "word/document.xml"
            copy.writestr(name, tostring(body) if is_body else archive.read(name))
    return buffer.getvalue()


def _deleted(body: _Element) -> Iterator[Loss]:
    texts = [element.text or "" for element in body.iter(f"{_WORD}delText")]
    if texts:
        size = sum(map(len, texts))
        yield Loss("tracked deletion", "was deleted by the author", "", size, len(texts))


def _running(archive: ZipFile) -> Iterator[Loss]:
    """Yields losses of page headers and footers, which are furniture."""
    for name in archive.namelist():
        if match := re.fullmatch(r"word/(header|footer)\d*\.xml", name):
            text = "".join(e.text or "" for e in parsed(archive.read(name)).iter(f"{_WORD}t"))
            if text.strip():
                yield Loss(
                    match[1], f"is on every page: {text[:80]}", "", len(text), furniture=True
                )
