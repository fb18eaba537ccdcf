"""RTF: text from striprtf, with headings, footnotes and table cells added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, ClassVar

from leporello.core.environment.input_limits import RTF_DEPTH
from leporello.core.errors import UserError
from leporello.core.records import Loss
from leporello.loaders.files import Format
from leporello.text.outline import Extracted, Heading, outline

_BINARY = re.compile(rb"\\bin(\d{1,9}) ?")
_GROUP = re.compile(
    r"\{(?:\\\*)?\s*\\(fldinst|footnote|header|footer|annotation|pict|nonshppict|objdata)"
    r"[lrf]?(?![a-z])"
)
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_LOST = {
    "header": ("header", "is on every page"),
    "footer": ("footer", "is on every page"),
    "annotation": ("comment", "comments are not read"),
    "pict": ("image", "images are not read"),
    "objdata": ("embedded object", "is not read; save it as a separate file"),
}
_LEVEL = re.compile(r"\\outlinelevel([0-8])(?!\d) ?")
# Unicode reserves these, so striprtf passes them on and no file contains them.
_MARK = 0xFDD0  # first of nine code points for levels, which no text contains
_MARKED = re.compile(r"([\ufdd0-\ufdd8])+([^\n]*)")


def _step(brace: re.Match[str]) -> int:
    return {"{": 1, "}": -1}.get(brace[0], 0)


@dataclass(frozen=True)
class Rtf(Format):
    """RTF: text, with notes in parentheses at their references, and tabs between table cells."""

    suffixes: ClassVar[tuple[str, ...]] = (".rtf",)
    begins: ClassVar[re.Pattern[bytes]] = re.compile(rb"\{\\rtf")
    marked: ClassVar[bool] = True

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text; sections are paragraphs with an outline level.

        Raises:
            UserError: The file is not RTF.
        """
        if not self.begins.match(data):
            raise UserError(f"{path}: is not RTF: it does not begin with {{\\rtf")
        source = _ascii(data)
        if any(depth > RTF_DEPTH for depth in accumulate(map(_step, _BRACE.finditer(source)))):
            raise RecursionError
        losses: list[Loss] = []
        source = "".join(_kept(source, losses))
        source = re.sub(r"\\(?:nest)?cell(?![a-z])", r"\\tab", source)
        marked = _plain(_LEVEL.sub(lambda m: m[0] + chr(_MARK + int(m[1])), source))
        marked = marked.replace("\t\n", "\n").strip()
        pieces, headings, at, size = [], [], 0, 0
        for match in _MARKED.finditer(marked):
            pieces.append(marked[at : match.start()])
            size, at = size + len(pieces[-1]), match.start(2)
            if match[2].strip():
                headings.append(Heading(match[2].strip(), size, ord(match[1]) - _MARK + 1))
        text = "".join((*pieces, marked[at:]))
        braces = [b[0] for b in _BRACE.finditer(source)]
        cut = braces.count("{") > braces.count("}")
        notes = (f"{path.name} is truncated: it ends within a group",) if cut else ()
        title = headings[0].title if headings else ""
        return Extracted(text, title, outline(headings, len(text)), (), (*losses,), notes)


def _ascii(data: bytes) -> str:
    """Returns RTF without binary data, whose bytes beyond ASCII are escaped."""
    pieces, at = [], 0
    while match := _BINARY.search(data, at):
        pieces.append(data[at : match.start()])
        at = match.end() + int(match[1])
    plain = b"".join((*pieces, data[at:]))
    return re.sub(rb"[\x80-\xff]", lambda m: b"\\'%02x" % m[0][0], plain).decode("ascii")


def _kept(source: str, losses: list[Loss]) -> Iterator[str]:
    """Yields RTF with footnotes in parentheses, and appends skipped groups to losses."""
    at = 0
    while match := _GROUP.search(source, at):
        end = _end(source, match.start())
        yield source[at : match.start()]
        at, body, kind = end, source[match.end() : end - 1], match[1]
        if kind == "footnote":
            # Where the reference is, since a note far from it cannot be understood in a chunk.
            yield f" ({{{body.lstrip()}}})"
        elif kind in _LOST:
            text = _plain("{\\rtf1 " + body + "}") if kind not in ("pict", "objdata") else ""
            furniture = kind in ("header", "footer")
            if text.strip() or not furniture:
                losses.append(Loss(*_LOST[kind], "", len(text.strip()), furniture=furniture))
    yield source[at:]


def _end(source: str, start: int) -> int:
    """Returns the end of the group at `start`; the end of the file if no brace closes it."""
    depth = 0
    for brace in _BRACE.finditer(source, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if not depth and brace[0] == "}":
            return brace.end()
    return len(source)


def _plain(source: str) -> str:
    from striprtf import striprtf

    library: Any = striprtf  # which has no types
    text = str(library.rtf_to_text(source, errors="replace"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins surrogates
