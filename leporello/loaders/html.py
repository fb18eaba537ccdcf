"""HTML: text with the line breaks of a browser, and headings as sections."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.loaders.files import Format
from leporello.loaders.flow import Flow
from leporello.loaders.text import decoded
from leporello.text.looks import codec_of
from leporello.text.outline import Extracted

_DECLARED = re.compile(
    rb"""<\?xml(?:(?!<\?xml)[^>])*?encoding\s*+=\s*+["']([\w.:-]+)"""
    rb"""|<meta(?:(?!<meta)[^>])*?charset\s*+=\s*+["']?+\s*+([\w.:-]+)""",
    re.IGNORECASE,
)
_BEGINS = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,999}?-->\s*)?<(?:!doctype\s+html|html)[\s>]",
    re.I | re.S,
)
_DECLARED_WITHIN = 4096  # bytes; browsers examine the first 1024


@dataclass(frozen=True)
class Html(Format):
    """HTML: text with the line breaks of a browser, and headings as sections.

    Attributes:
        encoding: Encoding of files without a byte order mark, whatever they declare; detected if
            empty.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".html", ".htm", ".xhtml")
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*<")

    encoding: str = ""

    @staticmethod
    def recognises(head: bytes, path: Path) -> bool:
        """Returns whether the file begins with HTML's doctype or root, or any tag if named so."""
        has_suffix = path.suffix.lower() in Html.suffixes and head.lstrip().startswith(b"<")
        return has_suffix or _BEGINS.match(head) is not None

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text between the tags; scripts and styles are left out.

        White space is collapsed except in `<pre>`. Blocks are separate lines, paragraphs have empty
        lines between them, and tabs separate table cells. Images are represented by their
        alternative text; images without it, frames, and pages that scripts fill are losses.

        Raises:
            UserError: The declared charset is unknown.
        """
        from lxml.etree import HTMLParser

        # lxml calls `Flow` while it parses, so no tree is built. inscriptis took 29 s for a
        # paragraph of 2.2 MB, and lost the text of 400 nested elements (decision 5).
        page = Flow()
        parser = HTMLParser(
            target=page,  # type: ignore[arg-type]  # its stubs ask for more than lxml
            huge_tree=True,  # otherwise text that is nested too deep is lost
        )
        raw = decoded(data, path, self.encoding or _charset(data, path), "Html")
        # lxml raises an error for an empty page.
        parser.feed(raw.text or " ")
        parser.close()
        page.losses += raw.losses
        return replace(page.extracted(), notes=raw.notes)


def _charset(data: bytes, path: Path) -> str:
    declared = _DECLARED.search(data, 0, _DECLARED_WITHIN)
    if not declared:
        return ""
    name = (declared[1] or declared[2]).decode("ascii")
    try:
        codec = codec_of(name)
    except LookupError:
        raise UserError(
            f"{path}: declares the charset {name!r}, which is unknown; convert the file to UTF-8"
            " and correct its <meta charset>"
        ) from None
    # A file whose declaration reads as ASCII cannot be UTF-16.
    return "utf-8" if codec.startswith("utf-16") else codec
