"""PDF: text of pages in reading order, with places and losses."""

from __future__ import annotations

import logging
import re
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from leporello.core.environment.extras import install_command, is_installed, require
from leporello.core.errors import UserError
from leporello.core.protocols import Secret
from leporello.core.records import Document, Loss, Place
from leporello.loaders.files import Format
from leporello.loaders.pdf.layout import lines
from leporello.loaders.pdf.objects import has_hidden_layers
from leporello.loaders.pdf.ocr import recognised
from leporello.loaders.pdf.outline import Written, of_bookmarks, of_types, write
from leporello.loaders.pdf.pages import PageText, losses, page_names, page_text, take_furniture
from leporello.text.outline import Heading, outline

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument


__all__ = ["Pdf"]

_MOST_PAGES = 100_000
_LOCKED = 4  # pdfium's error code
_NO_TITLE = re.compile(r"untitled|microsoft|\.(docx?|dvi|tex|pdf|indd|qxd|rtf|odt|ps)\b", re.I)
_PDFIUM = threading.Lock()  # pdfium is not thread-safe

LARGEST_STREAM = 2**26  # bytes; pdfium needs sixteen times as many for text
_DENSEST = 1032  # highest compression ratio of deflate
_HEAD = 2**10  # bytes before a stream that contain its filters
_STREAM = re.compile(rb"stream(?<=\bstream)\r?\n")
_UNSEEN = re.compile(rb"/Image\b|/EmbeddedFile\b")  # streams that are not unpacked for text


@dataclass(frozen=True)
class Pdf(Format):
    """PDF: text of pages in reading order, with pages as places.

    Attributes:
        furniture: Whether page headers, footers and page numbers stay in the text.
        ocr: Pages that OCR reads: pages without text if the extra `ocr` is installed (`auto`),
            all pages (`always`), or no page (`never`).
        password: Password that opens a locked file.
    """

    suffixes = (".pdf",)
    begins = re.compile(rb"\A.{0,1019}?%PDF-", re.S)  # other bytes may precede it
    marked = True

    furniture: bool = False
    ocr: Literal["auto", "always", "never"] = "auto"
    password: Secret = ""

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text of pages; places have the names of pages: `p. 3`, `p. xii`.

        Raises UserError if the file is corrupt or locked, or `ocr` is `always` and not installed.
        """
        if self.ocr == "always":
            require("the loader Pdf with ocr: always", "rapidocr")
        with _PDFIUM, _opened(data, path, self.password) as pdf:
            layers = has_hidden_layers(data)
            texts = [page_text(pdf, index, layers) for index in range(len(pdf))]
            self._read_scans(pdf, texts, path)
            written = write([page.lines for page in texts])
            names = page_names(pdf)
            title, headings = _outline(pdf, texts, written)
            lost = (*losses(texts, names, self._unread()), *_attached(pdf, texts))
        ends = [*written.pages, len(written.text)]
        places = (Place(n, a, b) for n, (a, b) in zip(names, pairwise(ends), strict=True))
        sections = outline(headings, len(written.text))
        notes = {
            "pages were read by OCR": sum(page.ocr for page in texts),
            "pages have only invisible text, which was read": sum(p.invisible for p in texts),
        }
        sentences = tuple(f"{n} of {len(texts)} {what}" for what, n in notes.items() if n)
        return Document("", written.text, title, sections, (), tuple(places), lost, sentences)

    def _read_scans(self, pdf: PdfDocument, texts: list[PageText], path: Path) -> None:
        """Removes furniture, then reads scans: a page with only a footer counts as a scan."""
        complete = [page.lines for page in texts]
        if not self.furniture:
            take_furniture(texts)
        if self.ocr == "never" or not is_installed("rapidocr"):
            return
        reads_all = self.ocr == "always"
        scans = [i for i, p in enumerate(texts) if not p.fault and (reads_all or p.lacks_text)]
        if not scans:
            return
        for page, with_furniture in zip(texts, complete, strict=True):
            page.lines, page.furniture = with_furniture, []
        for index, fragments, blank in recognised(pdf, scans, path.name):
            page = texts[index]
            page.lines, page.undecodable, page.ocr = lines(fragments), blank, True
            page.pictures -= page.scanned
        if not self.furniture:
            take_furniture(texts)

    def _unread(self) -> str:
        """Returns why a page has no text."""
        if self.ocr == "never":
            return "likely a scan, and ocr is `never`"
        return f"likely a scan; to read it: {install_command('ocr')}"


@contextmanager
def _opened(data: bytes, path: Path, password: str) -> Iterator[PdfDocument]:
    from pypdfium2 import PdfDocument, PdfiumError

    logging.getLogger("pypdfium2").setLevel(logging.CRITICAL)
    if has_bomb(data):
        raise UserError(
            f"{path}: a page unpacks to more than {LARGEST_STREAM // 2**20} MiB, too much for text;"
            f" remove it: qpdf {path.name} --pages . 1-9 -- {path.stem}.part.pdf"
        )
    try:
        pdf = PdfDocument(data, password or None)
    except PdfiumError as error:
        raise _refused(path, error.err_code, password) from None
    try:
        if len(pdf) > _MOST_PAGES:
            raise UserError(f"{path}: declares {len(pdf):,} pages; divide it: qpdf --pages")
        if pdf.get_formtype():
            pdf.init_forms()
        yield pdf
    finally:
        pdf.close()


def _refused(path: Path, code: int | None, password: str) -> UserError:
    if code == _LOCKED:
        fault = "has another password" if password else "is locked"
        return UserError(
            f"{path}: {fault}; set the environment variable that holds its password,"
            " loader: {class: Pdf, password: $VARIABLE}, or save an open copy:"
            f" qpdf --decrypt --password=… {path.name} {path.stem}.open.pdf"
        )
    return UserError(
        f"{path}: is not a PDF, or is corrupt; a repair may help:"
        f" qpdf {path.name} {path.stem}.repaired.pdf"
    )


def _outline(
    pdf: PdfDocument, texts: list[PageText], written: Written
) -> tuple[str, list[Heading]]:
    """Returns the title and the headings, from bookmarks or from type sizes."""
    pages, tops = [page.lines for page in texts], [page.top for page in texts]
    title, headings = of_types(pages, written.starts)
    marked = of_bookmarks(pdf, pages, written.starts, tops)
    declared = " ".join(pdf.get_metadata_value("Title").split())
    is_title = declared and not _NO_TITLE.search(declared)
    return declared if is_title else title, marked or headings


def _attached(pdf: PdfDocument, texts: Sequence[PageText]) -> Iterator[Loss]:
    """Yields losses of attached files, and of forms that only their own program shows."""
    from pypdfium2 import raw

    names = [pdf.get_attachment(i).get_name() for i in range(min(pdf.count_attachments(), 100))]
    for name in [*names, *(name for page in texts for name in page.attachments)]:
        yield Loss("attachment", "attached files are not read; save it and load it too", name)
    if pdf.get_formtype() == raw.FORMTYPE_XFA_FULL:
        yield Loss("XFA form", "its fields are made by a program; print it to a PDF and load that")


def has_bomb(data: bytes) -> bool:
    """Returns whether a stream of a PDF unpacks to more than `LARGEST_STREAM`."""
    for match in _STREAM.finditer(data):
        start, end = match.end(), data.find(b"endstream", match.end())
        head = data[max(0, match.start() - _HEAD) : match.start()].rpartition(b" obj")[2]
        times = head.count(b"/FlateDecode") + len(re.findall(rb"/Fl\b", head))
        length = (len(data) if end < 0 else end) - start
        if not times or length * _DENSEST**times <= LARGEST_STREAM or _UNSEEN.search(head):
            continue
        content = data[start : start + length]
        with suppress(zlib.error):  # encrypted or damaged: pdfium stops there too
            for _ in range(times):
                content = zlib.decompressobj().decompress(content, LARGEST_STREAM + 1)
            if len(content) > LARGEST_STREAM:
                return True
    return False
