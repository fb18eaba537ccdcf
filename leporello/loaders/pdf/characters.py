"""Functions of pdfium without the checks of ctypes, and the characters of a page."""

from __future__ import annotations

import ctypes
import functools
import math
import re
import struct
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

from leporello.loaders.pdf.fragments import SLANTED, turned, turned_box

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage


# Pages, objects and functions of pdfium, which has no types.
Handle: TypeAlias = Any


class Pointer(ctypes.c_void_p):
    """Pointer to an object of pdfium; ctypes returns its base as an integer."""


class Floats:
    """Numbers that pdfium writes, with a pointer to each."""

    def __init__(self, count: int) -> None:
        self.values = (ctypes.c_float * count)()
        self.pointers = [ctypes.byref(self.values, 4 * i) for i in range(count)]


@functools.cache
def function(name: str) -> Handle:
    """Returns a function of pdfium; its arguments are ctypes objects or integers of 32 bits."""
    from pypdfium2 import raw

    checked = getattr(raw, name)
    plain = type(checked)(ctypes.cast(checked, ctypes.c_void_p).value)
    plain.restype = Pointer if hasattr(checked.restype, "contents") else checked.restype
    return plain


_BOLD = re.compile(r"bold|black|heavy|demi|medi(?!um)|CMBX|SFBX", re.IGNORECASE)
_ASLANT = 0.1  # of 90°
_NAME = ctypes.c_ulong(100)  # characters of the name of a font
# Origin of a character; left, upper, right and lower edge of a box.
_NUMBERS = struct.Struct("2d4f").unpack

# Beginning and end of a word along its line, its baseline, and the height of its type, in points.
Word: TypeAlias = tuple[float, float, float, float]


class Characters:
    """Characters of a page that stays open, read with as few calls of pdfium as possible."""

    def __init__(self, textpage: PdfTextPage) -> None:
        self.text = _text(textpage)  # one character for each that pdfium counts; surrogates are two
        self._page = textpage.raw
        self._numbers = numbers = ctypes.create_string_buffer(32)
        self._x, self._y, self._box = (ctypes.byref(numbers, at) for at in (0, 8, 16))
        self._matrix, self._name = (ctypes.c_float * 6)(), ctypes.create_string_buffer(_NAME.value)
        self._origin = function("FPDFText_GetCharOrigin")
        self._loose_box = function("FPDFText_GetLooseCharBox")
        self._size = function("FPDFText_GetFontSize")
        self._matrix_of = function("FPDFText_GetMatrix")
        self._font = function("FPDFText_GetFontInfo")

    def place(self, first: int, last: int, turn: int) -> Word:
        """Returns where a word begins and ends, its baseline, and the height of its end."""
        self._origin(self._page, first, self._x, self._y)
        self._loose_box(self._page, last, self._box)
        x, y, near, top, far, bottom = _NUMBERS(self._numbers)
        if turn:
            x, y = turned(turn, x, y)
            near, top, far, bottom = turned_box(turn, near, bottom, far, top)
            height = bottom - top
        else:
            y, height = -y, top - bottom
        return x if x < near else near, x if x > far else far, y, height

    def baseline(self, at: int, turn: int) -> float:
        """Returns the baseline of a character, in points downwards."""
        self._origin(self._page, at, self._x, self._y)
        x, y = _NUMBERS(self._numbers)[:2]
        return turned(turn, x, y)[1] if turn else -y

    def box(self, at: int) -> tuple[float, float, float, float]:
        """Returns the left, upper, right and lower edge of a character, in points upwards."""
        self._loose_box(self._page, at, self._box)
        west, north, east, south = _NUMBERS(self._numbers)[2:]
        return west, north, east, south

    def turn(self, at: int) -> int:
        """Returns a character's rotation in multiples of 90°; `SLANTED` for other angles."""
        turns = function("FPDFText_GetCharAngle")(self._page, at) / (math.pi / 2)
        return -round(turns) % 4 if abs(turns - round(turns)) < _ASLANT else SLANTED

    def type(self, at: int) -> tuple[float, bool]:
        """Returns the size in points of a character's type, and whether it is bold."""
        page, matrix, name = self._page, self._matrix, self._name
        size: float = self._size(page, at)
        if self._matrix_of(page, at, matrix):
            size *= math.hypot(matrix[2], matrix[3])
        self._font(page, at, name, _NAME, None)
        return size, _is_bold(name.value)

    def text_object(self, at: int) -> int | None:
        """Returns the address of the object that contains a character."""
        address: int | None = function("FPDFText_GetTextObject")(self._page, at).value
        return address


def _text(textpage: Handle) -> str:
    count = textpage.count_chars()
    # ctypes makes a type for each size: powers of two are few
    buffer = ctypes.create_string_buffer(1 << (4 * count + 2).bit_length())
    units = function("FPDFText_GetText")(textpage.raw, 0, count, buffer)
    text = buffer.raw[: 2 * max(units - 1, 0)].decode("utf-16-le", "replace")
    if len(text) == count:
        return text
    code_of, page = function("FPDFText_GetUnicode"), textpage.raw
    codes = (code_of(page, i) for i in range(count))
    return "".join(chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes)


@functools.lru_cache(maxsize=1000)
def _is_bold(name: bytes) -> bool:
    return _BOLD.search(name.decode("latin-1")) is not None
