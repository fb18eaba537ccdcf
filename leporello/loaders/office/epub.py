"""E-books: chapters in the order of the book, read as HTML."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from leporello.core.errors import UserError
from leporello.core.records import Loss, Section
from leporello.loaders.html import Html
from leporello.loaders.office.archive import ArchiveFormat, parsed, read, unpacked
from leporello.text.outline import Extracted, joined

if TYPE_CHECKING:
    from zipfile import ZipFile

    from lxml.etree import _Element

_OF_FONTS = {"http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"}
_PAGES = {"application/xhtml+xml", "text/html", "application/xml"}


@dataclass(frozen=True)
class Epub(ArchiveFormat):
    """E-books (epub) without DRM: chapters in order, with one place per chapter."""

    suffixes: ClassVar[tuple[str, ...]] = (".epub",)
    member: ClassVar[str] = "META-INF/container.xml"

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the chapters' text; places are named `chapter 3`, counted from the first file.

        Raises:
            UserError: The book is corrupt, or locked by DRM.
        """
        with unpacked(data, path) as archive:
            locked = parsed(read(archive, "META-INF/encryption.xml"))
            # Fonts are obfuscated in books without DRM too, and do not matter for text.
            if {e.get("Algorithm") for e in locked.iter("{*}EncryptionMethod")} - _OF_FONTS:
                raise UserError(
                    f"{path}: is locked by DRM; only the programs of its shop can open it"
                )
            container = parsed(archive.read("META-INF/container.xml"))
            [package, *_] = (e.get("full-path") or "" for e in container.iter("{*}rootfile"))
            book = parsed(archive.read(package))
            chapters = joined(_chapters(archive, book, posixpath.dirname(package), path))
        title = next((e.text or "" for e in book.iter("{*}title")), "")
        return replace(chapters, title=title)


def _chapters(
    archive: ZipFile, book: _Element, folder: str, path: Path
) -> Iterator[tuple[str, Extracted]]:
    items = {item.get("id"): item for item in book.iter("{*}item")}
    names = {i: _beside(folder, item.get("href") or "") for i, item in items.items()}
    labels = _labels(archive, [*names.values()])
    # The spine has the order of reading; the order of files in the archive is arbitrary.
    for number, place in enumerate(book.iter("{*}itemref"), 1):
        item, name = items.get(place.get("idref")), names.get(place.get("idref"), "")
        if item is None or name not in archive.namelist():
            chapter = Extracted("", losses=(Loss("chapter", "is not in the file", name),))
        elif item.get("media-type") not in _PAGES:
            chapter = Extracted("", losses=(Loss("image", "images are not read", name),))
        else:
            chapter = Html().extract(archive.read(name), path / name)
        if (label := labels.get(name)) and not chapter.sections and chapter.text:
            chapter = replace(chapter, sections=(Section(label, 0, len(chapter.text)),))
        yield f"chapter {number}", chapter


def _labels(archive: ZipFile, names: list[str]) -> dict[str, str]:
    """Returns the titles of chapters by file, from the older form of contents (ncx)."""
    labels: dict[str, str] = {}
    for name in names:
        if name.endswith(".ncx"):
            for point in parsed(read(archive, name)).iter("{*}navPoint"):
                source = point.find("{*}content")
                text = " ".join(point.findtext("{*}navLabel/{*}text", "").split())
                href = "" if source is None else (source.get("src") or "").partition("#")[0]
                labels.setdefault(_beside(posixpath.dirname(name), href), text)
    return labels


def _beside(folder: str, href: str) -> str:
    return posixpath.normpath(posixpath.join(folder, unquote(href)))
