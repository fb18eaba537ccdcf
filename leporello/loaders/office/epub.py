"""E-books: chapters in the order of the book, read as HTML."""

from __future__ import annotations

import posixpath
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss
from leporello.loaders.html import Html
from leporello.loaders.office.archive import ArchiveFormat, Element, beside, parsed, read, unpacked
from leporello.text.outline import joined

_OF_FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_PAGES = {"application/xhtml+xml", "text/html", "application/xml"}


@dataclass(frozen=True)
class Epub(ArchiveFormat):
    """E-books (epub) without DRM: chapters in order, with one place per chapter."""

    suffixes = (".epub",)
    member = "META-INF/container.xml"

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the chapters' text; places are named `chapter 3`, counted from the first file."""
        with unpacked(data, path) as archive:
            locked = parsed(read(archive, "META-INF/encryption.xml"))
            if {e.get("Algorithm") for e in locked.iter("{*}EncryptionMethod")} - _OF_FONTS:
                raise UserError(
                    f"{path}: is locked by DRM; only the programs of its shop can open it"
                )
            container = parsed(archive.read("META-INF/container.xml"))
            paths = (e.get("full-path") for e in container.iter("{*}rootfile"))
            books = (name for name in archive.namelist() if name.lower().endswith(".opf"))
            package = next(filter(None, (*paths, *books)))
            book = parsed(archive.read(package))
            chapters = joined(_chapters(archive, book, posixpath.dirname(package), path))
        title = next((e.text or "" for e in book.iter("{*}title")), "")
        return replace(chapters, title=title)


def _chapters(
    archive: ZipFile, book: Element, folder: str, path: Path
) -> Iterator[tuple[str, Document]]:
    """Yields the chapters in the order of the book, then pages that are not part of the order."""
    items = {item.get("id"): item for item in book.iter("{*}item")}
    names = {i: beside(folder, unquote(item.get("href") or "")) for i, item in items.items()}
    order = [place.get("idref") for place in book.iter("{*}itemref")]
    for number, id_ in enumerate(order, 1):
        name = names.get(id_, "")
        yield f"chapter {number}", _chapter(archive, items.get(id_), name, path)
    for id_, item in items.items():
        name = names[id_]
        if id_ in order or item.get("media-type") not in _PAGES or name not in archive.namelist():
            continue
        page = _chapter(archive, item, name, path)
        if "nav" in (item.get("properties") or "").split():
            why = "repeats the titles of the chapters"
            loss = Loss("contents", why, name, len(page.text), furniture=True)
            page = Document("", "", losses=(loss,))
        yield f"page {name}, outside the chapters", page


def _chapter(archive: ZipFile, item: Element | None, name: str, path: Path) -> Document:
    """Returns the text of a page, or its loss."""
    if item is None or name not in archive.namelist():
        return Document("", "", losses=(Loss("chapter", "is not in the file", name),))
    if item.get("media-type") not in _PAGES:
        return Document("", "", losses=(Loss("image", "images are not read", name),))
    try:
        return Html().extract(archive.read(name), path / name)
    except (UserError, RecursionError, BadZipFile, EOFError, zlib.error) as error:
        reason = str(error).removeprefix(f"{path / name}: ") or "is nested too deeply"
        return Document("", "", losses=(Loss("chapter", reason, name),))
