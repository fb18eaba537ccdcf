"""Objects and annotations of a page: pictures, text that nobody sees, form fields, comments."""

from __future__ import annotations

import ctypes
import functools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from leporello.loaders.pdf.characters import Floats, Handle, Pointer, function

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pypdfium2 import PdfDocument, PdfPage

    from leporello.loaders.pdf.characters import Characters


_COVERED = 0.5  # of a page: a larger picture is likely a scan of the page
_NESTED = 15  # forms within forms
_WHITE = 250  # of 255
_INK = 24  # of 255: difference of the colors where text is seen
_UNSEEN = (3, 7)  # text render modes
_LAYER_OFF = re.compile(rb"/OFF\s*\[\s*\d|/OFF\s+\d|/BaseState\s*/OFF")
_OBJECT_STREAM = re.compile(rb"/ObjStm\b[^\0]{0,500}?\bstream\r?\n")
_CATALOG = re.compile(rb"/Type\s*/Catalog\b")
_LARGEST = 2**24  # bytes of an object stream


def has_hidden_layers(data: bytes) -> bool:
    """Returns whether a PDF has layers that are switched off, as far as it is not encrypted."""
    if b"/OFF" in data and _LAYER_OFF.search(data):
        return True
    if b"/OCProperties" not in data and _CATALOG.search(data):
        return False  # the catalog, which names layers, is not in an object stream
    view = memoryview(data)
    for match in _OBJECT_STREAM.finditer(data):
        stop = data.find(b"endstream", match.end())
        try:
            unpacked = zlib.decompressobj().decompress(view[match.end() : stop], _LARGEST)
        except zlib.error:
            continue
        if b"/OFF" in unpacked and _LAYER_OFF.search(unpacked):
            return True
    return False


@dataclass
class PageObjects:
    """Objects of a page, and which of its text is seen; sets have the addresses of text objects.

    Invisible text is read if it is the text layer of pictures, or all text of the page.
    """

    page: PdfPage
    pictures: int = 0  # number of pictures
    covered: float = 0.0  # share of the page that the pictures cover
    blank: bool = True  # whether the page is empty
    texts: int = 0  # number of text objects
    invisible: set[int | None] = field(default_factory=set)  # text that is not drawn
    # Text that may be white on white, or on a hidden layer
    doubtful: set[int | None] = field(default_factory=set)
    paths: list[Pointer] = field(default_factory=list)  # drawn lines and shapes outside forms

    @property
    def scanned(self) -> bool:
        """Whether pictures cover most of the page."""
        return self.covered > _COVERED

    @functools.cached_property
    def hidden(self) -> set[int | None]:
        """Invisible text that is not read."""
        is_read = self.scanned or self.texts == len(self.invisible)
        return set() if is_read else self.invisible

    def is_seen(self, characters: Characters, first: int, last: int) -> bool:
        """Returns whether a word is seen."""
        item = characters.text_object(first)
        if item in self.hidden:
            return False
        return item not in self.doubtful or self._has_ink(characters, first, last)

    def _has_ink(self, characters: Characters, first: int, last: int) -> bool:
        """Returns whether the rendered page has several colors where a word is."""
        from pypdfium2 import raw

        height, width = self._picture.shape
        xs, ys = [], []
        x, y = ctypes.c_int(), ctypes.c_int()
        for at in (first, last):
            west, north, east, south = characters.box(at)
            for corner in ((west, south), (east, north)):
                raw.FPDF_PageToDevice(self.page, 0, 0, width, height, 0, *corner, x, y)
                xs.append(min(max(x.value, 0), width - 1))
                ys.append(min(max(y.value, 0), height - 1))
        part = self._picture[min(ys) : max(ys) + 1, min(xs) : max(xs) + 1]
        return int(part.max()) - int(part.min()) > _INK

    @functools.cached_property
    def _picture(self) -> NDArray[np.uint8]:
        picture = self.page.render(scale=1.0, grayscale=True, may_draw_forms=False).to_numpy()
        pixels: NDArray[np.uint8] = picture.reshape(picture.shape[:2])
        return pixels


def page_objects(page: PdfPage, area: float, layers: bool) -> PageObjects:
    """Returns the objects of a page.

    `area` is that of the page, in square points; `layers`, whether some are switched off.
    """
    from pypdfium2 import raw

    text, image, path = raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_PATH
    mode_of, color_of = map(function, ("FPDFTextObj_GetTextRenderMode", "FPDFPageObj_GetFillColor"))
    bounds_of, sides = function("FPDFPageObj_GetBounds"), Floats(4)
    red, green, blue, opacity = color = [ctypes.c_uint() for _ in range(4)]
    pointers = [*map(ctypes.byref, color)]
    objects = PageObjects(page)
    for item, kind, nested in _objects(page.raw):
        objects.blank = False
        if kind == text:
            objects.texts += 1
            color_of(item, *pointers)
            is_white = red.value >= _WHITE and green.value >= _WHITE and blue.value >= _WHITE
            mode = mode_of(item)
            if mode in _UNSEEN or not opacity.value:
                objects.invisible.add(item.value)
            if (is_white and mode in (0, *_UNSEEN)) or (layers and (nested or _is_layered(item))):
                objects.doubtful.add(item.value)
        elif kind == image:
            objects.pictures += 1
            bounds_of(item, *sides.pointers)
            west, south, east, north = sides.values
            objects.covered += (east - west) * (north - south) / area
        elif kind == path and not nested:
            objects.paths.append(item)
    return objects


def _is_layered(item: Pointer) -> bool:
    """Returns whether an object belongs to a layer."""
    name, size = (ctypes.c_ushort * 3)(), ctypes.c_ulong()
    room, needed = ctypes.c_ulong(ctypes.sizeof(name)), ctypes.byref(size)
    mark_of, name_of = function("FPDFPageObj_GetMark"), function("FPDFPageObjMark_GetName")
    marks = (mark_of(item, i) for i in range(function("FPDFPageObj_CountMarks")(item)))
    return any(
        name_of(mark, name, room, needed) and bytes(name) == "OC\0".encode("utf-16-le")
        for mark in marks
    )


def _objects(parent: Handle, depth: int = 0) -> Iterator[tuple[Pointer, int, bool]]:
    """Yields objects of a page, their kinds, and whether they are in a form, which comes first."""
    from pypdfium2 import raw

    kind_of, place = function("FPDFPageObj_GetType"), "FormObj" if depth else "Page"
    object_of, form = function(f"FPDF{place}_GetObject"), raw.FPDF_PAGEOBJ_FORM
    for i in range(function(f"FPDF{place}_CountObjects")(parent)):
        item = object_of(parent, i)
        kind = kind_of(item)
        yield item, kind, depth > 0
        if kind == form and depth <= _NESTED:
            yield from _objects(item, depth + 1)


_TICKED = frozenset(("yes", "on", "true", "1", "x", "oui", "ja", "sí", "si"))
# Kinds of annotations that show something without a comment.
_DRAWINGS = (
    "INK", "STAMP", "LINE", "SQUARE", "CIRCLE", "POLYGON", "POLYLINE", "SOUND", "MOVIE", "SCREEN",
    "THREED", "RICHMEDIA", "WATERMARK",
)  # fmt: skip


class Note(NamedTuple):
    """Form field or comment."""

    text: str = ""  # `field: value`, or text of a comment; empty if it has no text
    hidden: bool = False  # whether it is not shown
    attachment: str = ""  # name of an attached file


def page_notes(pdf: PdfDocument, page: PdfPage) -> list[Note]:
    """Returns filled fields, comments, and drawings and media without text."""
    from pypdfium2 import raw

    notes: list[Note] = []
    annotation_of, kind_of = function("FPDFPage_GetAnnot"), function("FPDFAnnot_GetSubtype")
    hidden = raw.FPDF_ANNOT_FLAG_HIDDEN | raw.FPDF_ANNOT_FLAG_NOVIEW
    silent = (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP)
    for i in range(raw.FPDFPage_GetAnnotCount(page)):
        item = annotation_of(page.raw, i)
        if (kind := kind_of(item)) not in silent:
            is_hidden = bool(function("FPDFAnnot_GetFlags")(item) & hidden)
            notes += [note._replace(hidden=is_hidden) for note in _notes(pdf, item, kind)]
        function("FPDFPage_CloseAnnot")(item)
    return [*dict.fromkeys(notes)] if len(notes) > 1 else notes  # all buttons of a group are equal


def _notes(pdf: PdfDocument, item: Pointer, kind: int) -> Iterator[Note]:
    """Yields the note of an annotation; marks without a comment have no note."""
    from pypdfium2 import raw

    if kind == raw.FPDF_ANNOT_WIDGET:
        text = _field(pdf.formenv, item) if pdf.formenv else ""
        if text or (pdf.formenv and _is_signed(pdf.formenv, item)):
            yield Note(text)
        return
    if kind == raw.FPDF_ANNOT_FILEATTACHMENT:
        file = function("FPDFAnnot_GetFileAttachment")(item)
        yield Note(attachment=_string("FPDFAttachment_GetName", file) or "file")
    if comment := _string("FPDFAnnot_GetStringValue", item, b"Contents"):
        yield Note(comment)
    elif kind in [getattr(raw, f"FPDF_ANNOT_{name}") for name in _DRAWINGS]:
        yield Note()


def _field(form: Handle, item: Pointer) -> str:
    """Returns `field: value` of a filled field, `field: ☐` of a box without a tick."""
    from pypdfium2 import raw

    name, value = (
        _string(f"FPDFAnnot_GetFormField{part}", form, item) for part in ("Name", "Value")
    )
    if function("FPDFAnnot_GetFormFieldType")(form, item) == raw.FPDF_FORMFIELD_CHECKBOX:
        if not function("FPDFAnnot_IsChecked")(form, item):
            return f"{name}: ☐"
        return f"{name}: ☒" + ("" if value.lower() in _TICKED else f" {value}")
    return f"{name}: {value}" if value not in ("", "Off") else ""


def _is_signed(form: Handle, item: Pointer) -> bool:
    """Returns whether a field is a signature that the page shows."""
    from pypdfium2 import raw

    kind = function("FPDFAnnot_GetFormFieldType")(form, item)
    is_signature: bool = kind == raw.FPDF_FORMFIELD_SIGNATURE
    return is_signature and function("FPDFAnnot_GetObjectCount")(item) > 0


def _string(name: str, *arguments: Handle) -> str:
    """Returns the UTF-16 string that a function of pdfium writes."""
    get = function(name)
    size = get(*arguments, None, ctypes.c_ulong(0))
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    get(*arguments, buffer, ctypes.c_ulong(size))
    text = bytes(buffer)[: max(size - 2, 0)].decode("utf-16-le", "replace")
    return " ".join(text.split())
