"""Objects of a page: pictures, and text that nobody sees."""

from __future__ import annotations

import ctypes
import functools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leporello.loaders.pdf.words import Handle

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pypdfium2 import PdfPage

_COVERED = 0.5  # of a page: a larger picture is likely a scan of the page
_NESTED = 15  # forms within forms
_WHITE = 250  # of 255
_INK = 24  # of 255: difference of the colors where text is seen
_UNSEEN = (3, 7)  # text render modes
_LAYER_OFF = re.compile(rb"/OFF\s*\[\s*\d|/OFF\s+\d|/BaseState\s*/OFF")
_OBJECT_STREAM = re.compile(rb"/ObjStm\b[^\0]{0,500}?\bstream\r?\n")
_LARGEST = 2**24  # bytes of an object stream


def has_hidden_layers(data: bytes) -> bool:
    """Returns whether a PDF has layers that are switched off, as far as it is not encrypted."""
    if _LAYER_OFF.search(data):
        return True
    for match in _OBJECT_STREAM.finditer(data):
        try:
            unpacked = zlib.decompressobj().decompress(data[match.end() :], _LARGEST)
        except zlib.error:
            continue
        if _LAYER_OFF.search(unpacked):
            return True
    return False


@dataclass(slots=True)
class PageObjects:
    """Objects of a page, with the addresses of text objects.

    Attributes:
        pictures: Number of pictures.
        covered: Share of the page that the pictures cover.
        blank: Whether the page is empty.
        invisible: Text that is not drawn.
        white: White text, which is seen on other colors only.
        drawn: Whether anything but text is drawn.
        texts: Number of text objects.
    """

    pictures: int = 0
    covered: float = 0.0
    blank: bool = True
    invisible: set[int] = field(default_factory=set)
    white: set[int] = field(default_factory=set)
    drawn: bool = False
    texts: int = 0

    @property
    def scanned(self) -> bool:
        """Whether pictures cover most of the page."""
        return self.covered > _COVERED


class Visibility:
    """Decides which text of a page is seen.

    Invisible text is read if it is the text layer of pictures, or all text of the page.

    Attributes:
        is_certain: Whether all text is seen.
        is_layer: Whether all text is invisible, and is read.
    """

    def __init__(self, page: PdfPage, objects: PageObjects, layers: bool) -> None:
        """Takes a page, its objects, and whether the file has layers that are switched off."""
        self._page, self._objects, self._layers = page, objects, layers
        self.is_layer = 0 < objects.texts == len(objects.invisible)
        is_read = objects.scanned or self.is_layer
        self._invisible = set[int]() if is_read else objects.invisible
        self.is_certain = not (self._invisible or objects.white or layers)

    def is_seen(self, textpage: Handle, first: int, last: int) -> bool:
        """Returns whether a word is seen."""
        from pypdfium2 import raw

        item = ctypes.cast(raw.FPDFText_GetTextObject(textpage, first), ctypes.c_void_p).value
        if item in self._invisible:
            return False
        is_white = item in self._objects.white
        if is_white and not self._objects.drawn:
            return False
        return not (is_white or self._layers) or self._has_ink(textpage, first, last)

    def _has_ink(self, textpage: Handle, first: int, last: int) -> bool:
        """Returns whether the rendered page has several colors where a word is."""
        from pypdfium2 import raw

        height, width = self._picture.shape
        xs, ys = [], []
        box, x, y = raw.FS_RECTF(), ctypes.c_int(), ctypes.c_int()
        for at in (first, last):
            raw.FPDFText_GetLooseCharBox(textpage, at, box)
            for corner in ((box.left, box.bottom), (box.right, box.top)):
                raw.FPDF_PageToDevice(self._page, 0, 0, width, height, 0, *corner, x, y)
                xs.append(min(max(x.value, 0), width - 1))
                ys.append(min(max(y.value, 0), height - 1))
        part = self._picture[min(ys) : max(ys) + 1, min(xs) : max(xs) + 1]
        return int(part.max()) - int(part.min()) > _INK

    @functools.cached_property
    def _picture(self) -> NDArray[np.uint8]:
        picture = self._page.render(scale=1.0, grayscale=True, may_draw_forms=False).to_numpy()
        pixels: NDArray[np.uint8] = picture.reshape(picture.shape[:2])
        return pixels


def page_objects(page: PdfPage, area: float) -> PageObjects:
    """Returns the objects of a page with an area in square points."""
    from pypdfium2 import raw

    found = PageObjects(blank=raw.FPDFPage_CountObjects(page) == 0)
    kinds = raw.FPDF_PAGEOBJ_TEXT, raw.FPDF_PAGEOBJ_IMAGE, raw.FPDF_PAGEOBJ_FORM
    color = [ctypes.c_uint() for _ in range(4)]
    for item, kind in _objects(raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, page.raw):
        if kind == kinds[0]:
            found.texts += 1
            mode = raw.FPDFTextObj_GetTextRenderMode(item)
            raw.FPDFPageObj_GetFillColor(item, *color)
            if mode in _UNSEEN or not color[3].value:
                found.invisible.add(_address(item))
            if mode in (0, *_UNSEEN) and min(c.value for c in color[:3]) >= _WHITE:
                found.white.add(_address(item))
        elif kind == kinds[1]:
            found.pictures += 1
            found.covered += _size(item) / area
        if kind not in (kinds[0], kinds[2]):
            found.drawn = True
    return found


def _address(item: Handle) -> int:
    return ctypes.cast(item, ctypes.c_void_p).value or 0


def _size(item: Handle) -> float:
    """Returns the area of an object in square points."""
    from pypdfium2 import raw

    sides = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(item, *sides)
    west, south, east, north = (side.value for side in sides)
    return (east - west) * (north - south)


def _objects(
    count: Handle, get: Handle, parent: Handle, depth: int = _NESTED
) -> Iterator[tuple[Handle, int]]:
    """Yields objects and their kinds, those of forms after their form."""
    from pypdfium2 import raw

    kind_of, form = raw.FPDFPageObj_GetType, raw.FPDF_PAGEOBJ_FORM
    for i in range(count(parent)):
        item = get(parent, i)
        kind = kind_of(item)
        yield item, kind
        if depth and kind == form:
            yield from _objects(
                raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject, item, depth - 1
            )
