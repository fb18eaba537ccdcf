"""Functions of pdfium without the checks of ctypes, which take longer than most of them."""

import ctypes
import functools
from typing import Any, TypeAlias

# Pages, objects and functions of pdfium, which has no types.
Handle: TypeAlias = Any


class Pointer(ctypes.c_void_p):
    """Pointer to an object of pdfium; ctypes returns its base as an integer."""


class Floats:
    """Numbers that pdfium writes, with a pointer to each."""

    def __init__(self, count: int) -> None:
        """Makes room for some numbers."""
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
