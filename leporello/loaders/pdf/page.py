"""Reads a page with pdfium: runs of words with their positions, pictures and notes."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello.loaders.pdf.words import Fragment, Handle, WordReader, turned

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_COVERED = 0.5  # of a page: a larger picture is likely a scan of the page
_NESTED = 15  # forms within forms


@dataclass(slots=True)
class RawPage:
    """Content of a page from pdfium.

    Attributes:
        fragments: Fragments of the page's main direction, in the file's order.
        turned: Fragments in other directions, in the file's order.
        top: The page's upper edge, in points downwards from the file's zero.
        height: Height of the page, in points.
        undecodable: Number of characters without a known letter.
        pictures: Number of pictures.
        scanned: Whether a picture covers most of the page.
        blank: Whether the page is empty.
        notes: Texts of form fields and comments.
    """

    fragments: list[Fragment]
    turned: list[Fragment]
    top: float = 0.0
    height: float = 0.0
    undecodable: int = 0
    pictures: int = 0
    scanned: bool = False
    blank: bool = False
    notes: tuple[str, ...] = ()


def raw_page(pdf: PdfDocument, index: int) -> RawPage:
    """Returns a page.

    Raises:
        PdfiumError: The page is broken.
    """
    page = pdf[index]
    try:
        words = WordReader(page, frozenset())
        words.read()
        counts = Counter[int]()
        for fragment, turn in words.fragments:
            counts[turn] += len(fragment.text)
        main = max(counts, key=counts.__getitem__, default=0)
        west, south, east, north = page.get_bbox()
        edges = sorted(turned(main, x, y)[1] for x, y in ((west, south), (east, north)))
        for fragment, _ in words.fragments:
            fragment.y -= edges[0]
        pictures, covered, blank = _pictures(page, abs((east - west) * (north - south)) or 1.0)
        return RawPage(
            [fragment for fragment, turn in words.fragments if turn == main],
            [fragment for fragment, turn in words.fragments if turn != main],
            edges[0], edges[1] - edges[0], words.undecodable,
            pictures, covered > _COVERED, blank, tuple(_notes(pdf, page)),
        )  # fmt: skip
    finally:
        page.close()


def _pictures(page: PdfPage, area: float) -> tuple[int, float, bool]:
    """Returns the number of pictures, the largest one's share of the page, and if it is blank."""
    from pypdfium2 import raw

    pictures, largest = 0, 0.0
    sides = [ctypes.c_float() for _ in range(4)]
    for item in _objects(raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, page, _NESTED):
        if raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_IMAGE:
            pictures += 1
            if raw.FPDFPageObj_GetBounds(item, *sides):
                west, south, east, north = (side.value for side in sides)
                largest = max(largest, (east - west) * (north - south) / area)
    return pictures, largest, raw.FPDFPage_CountObjects(page) == 0


def _objects(count: Handle, get: Handle, parent: Handle, depth: int) -> Iterator[Handle]:
    from pypdfium2 import raw

    for i in range(count(parent)):
        item = get(parent, i)
        yield item
        if depth and raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_FORM:
            yield from _objects(
                raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject, item, depth - 1
            )


def _notes(pdf: PdfDocument, page: PdfPage) -> Iterator[str]:
    """Yields `field: value` of filled forms, and texts of comments."""
    from pypdfium2 import raw

    silent = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP)
    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, i)
        kind = raw.FPDFAnnot_GetSubtype(note)
        if kind == raw.FPDF_ANNOT_WIDGET and pdf.formenv:
            name, value = (
                _string(get, pdf.formenv, note)
                for get in (raw.FPDFAnnot_GetFormFieldName, raw.FPDFAnnot_GetFormFieldValue)
            )
            if value not in ("", "Off"):
                yield f"{name}: {value}"
        elif kind not in silent and (
            comment := _string(raw.FPDFAnnot_GetStringValue, note, b"Contents")
        ):
            yield comment
        raw.FPDFPage_CloseAnnot(note)


def _string(get: Handle, *arguments: Handle) -> str:
    """Returns the UTF-16 string that a function of pdfium writes."""
    size = get(*arguments, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    get(*arguments, buffer, size)
    text = bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "replace")
    return " ".join(text.split())
