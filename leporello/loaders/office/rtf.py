"""Rich text: striprtf takes what is text out of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.text.outline import Extracted

__all__ = ["Rtf"]

_TITLE = re.compile(r"\{\\title ([^{}]*)\}")
_NOTES = re.compile(r"\\(?:\*\\annotation|footnote)\b")  # whose texts the library leaves out
_CELL = re.compile(r"\\cell\b ?")
_LOST = {
    r"\\pict\b": ("image", "images are not read"),
    r"\\object\b": ("embedded object", "is not read"),
    r"\\(?:header|footer)[lrf]?\b": ("header or footer", "stands on pages"),
}


@dataclass(frozen=True)
class Rtf(Format):
    """Rich text (rtf): its paragraphs and tables; it marks no headings that could be relied on."""

    suffixes: ClassVar[tuple[str, ...]] = (".rtf",)
    marked: ClassVar[bool] = True

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:  # noqa: ARG004 -- the content says it
        """Returns whether the file begins as rich text does."""
        return head.startswith(b"{\\rtf")

    def extract(self, data: bytes, path: Path) -> Extracted:  # noqa: ARG002 -- the library has its own messages
        """Returns the text.

        Raises:
            UserError: The file is broken.
        """
        from striprtf.striprtf import rtf_to_text

        source = data.decode("latin-1")
        plain = _CELL.sub(r"\\tab ", _NOTES.sub(r"\\par ", source))
        text = rtf_to_text(plain, errors="replace").strip()  # type: ignore[no-untyped-call]
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        title = _TITLE.search(source)
        found = ((told, len(re.findall(pattern, source))) for pattern, told in _LOST.items())
        losses = (Loss(*t, count=n, furniture="header" in t[0]) for t, n in found if n)
        return Extracted(whole, title[1] if title else "", losses=(*losses,))
