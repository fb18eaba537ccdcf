"""RTF: text from striprtf, with headings, footnotes, table cells and raised figures added."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from leporello.core.environment.input_limits import RTF_DEPTH
from leporello.core.errors import UserError
from leporello.core.records import Document, Loss
from leporello.loaders.figures import lowered, raised
from leporello.loaders.files import Format
from leporello.text.outline import Heading, outline

_UP, _DOWN, _HIDE, _END = "\ufde0\ufde1\ufde2\ufde3"
_MARKS = {"super": _UP, "sub": _DOWN, "up": _UP, "dn": _DOWN, "v": _HIDE}
_FORMAT = re.compile(
    r"\\(super|sub|up|dn|nosupersub|v|plain)(?![a-z])(-?\d*) ?|\\.|[{}]", re.DOTALL
)
_ROW = re.compile(r"\\trowd(?![a-z]).*?(?:\\row(?![a-z])|\Z)", re.S)
_BREAK = re.compile(r"\\(?:nestcell|par|line)(?![a-z])(?:-?\d+)? ?")  # in cells
# Rows without text, the tab after the last cell, and blanks before tabs.
_PADDING = re.compile(r"^[ \t]*\t\n|\t$|(?<! ) +(?=\t)", re.M)
_FRACTION = re.compile(f"(\\w?){_UP}(\\d+){_END}?([/\u2044]){_DOWN}(\\d+){_END}?")
_MARKED = re.compile(f"([{_UP}{_DOWN}{_HIDE}])([^{_UP}{_DOWN}{_HIDE}{_END}]*){_END}?")


def marked_formats(source: str) -> str:
    """Returns RTF with marks around raised, lowered and hidden text."""
    if not re.search(r"\\(?:super|sub|up|dn|v)(?![a-z])", source):
        return source
    pieces: list[str] = []
    at, outer, current = 0, [], ""  # the marks that are open, in groups and now
    for match in _FORMAT.finditer(source):
        word, before = match[1], current
        if match[0] == "{":
            outer.append(current)
        elif match[0] == "}":
            current = outer.pop() if outer else ""
        elif word:
            is_off = match[2] == "0" or word in ("nosupersub", "plain")
            ends = word == "plain" or current != _HIDE or word == "v"
            current = _MARKS[word] if not is_off else "" if ends else current
        if current == before:
            continue
        mark = (_END if before else "") + current
        marked = mark + match[0] if match[0] == "}" else match[0] + mark
        pieces += (source[at : match.start()], marked)
        at = match.end()
    return "".join([*pieces, source[at:]])


def marked_rows(source: str) -> str:
    """Returns RTF with tabs after cells, and blanks in place of paragraphs in cells."""
    source = _ROW.sub(lambda row: _BREAK.sub(" ", row[0].replace("\\nestrow", ";")), source)
    return re.sub(r"\\(?:nest)?cell(?![a-z]) ?", r"\\tab ", source)


def unmarked(text: str) -> tuple[str, list[Loss]]:
    """Returns text with signs in place of the marks, and the hidden text as losses."""
    losses: list[Loss] = []

    def signed(match: re.Match[str]) -> str:
        inner = match[2]
        if match[1] == _HIDE:
            if inner.strip():
                why = "is in the file, but is not shown"
                losses.append(Loss("hidden text", why, characters=len(inner.strip())))
            return ""
        before = text[match.start() - 1 : match.start()]
        if match[1] == _UP:
            signs = raised(inner) if before.strip() else ("", "")
        else:
            signs = lowered(inner, before)
        return signs[0] + inner + signs[1]

    if _UP in text and _DOWN in text:
        text = _FRACTION.sub(lambda m: f"{m[1]}{' ' * bool(m[1])}{m[2]}{m[3]}{m[4]}", text)
    text = _MARKED.sub(signed, text).replace(_END, "")
    return _PADDING.sub("", text), losses


_BINARY = re.compile(rb"\\bin(\d{1,9}) ?")
_GROUP = re.compile(
    r"\{(?:\\\*)?\s*\\(fldinst|footnote|header|footer|annotation|pict|nonshppict|objdata|shp"
    r"|listtext|pntext)"
    r"[lrf]?(?![a-z])"
)
# A byte of a font of symbols that is the label of an item.
_BULLET, _SIGN = re.compile(r"(?<![\w.)'])\\'[89a-f][0-9a-f](?=\s*\Z)"), r"\\u8226?"
_BRACE, _STEPS = re.compile(r"\\.|[{}]", re.DOTALL), {"{": 1, "}": -1}
_LOST = {
    "header": ("header", "is on every page"),
    "footer": ("footer", "is on every page"),
    "annotation": ("comment", "comments are not read"),
    "pict": ("image", "images are not read"),
    "objdata": ("embedded object", "is not read; save it as a separate file"),
}
_SHAPE_TEXT = re.compile(r"\{\\shptxt(?![a-z])")
_LEVEL = re.compile(r"\\outlinelevel([0-8])(?!\d) ?")
_MARK = 0xFDD0  # first of nine code points for levels, which no text contains
_LEVELLED = re.compile(r"([\ufdd0-\ufdd8][\ufdd0-\ufdd8]*)([^\n]*)")


@dataclass(frozen=True)
class Rtf(Format):
    """RTF: text, with notes in parentheses at their references, and tabs between table cells."""

    suffixes = (".rtf",)
    begins = re.compile(rb"\{\\rtf")
    marked = True

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text; sections are paragraphs with an outline level."""
        if not self.begins.match(data):
            raise UserError(f"{path}: is not RTF: it does not begin with {{\\rtf")
        source = _ascii(data)
        depths = [*accumulate(_STEPS.get(brace, 0) for brace in _BRACE.findall(source))]
        if max(depths) > RTF_DEPTH:
            raise RecursionError
        losses: list[Loss] = []
        source = "".join(_kept(source, losses))
        source = marked_formats(marked_rows(source))
        marked = _plain(_LEVEL.sub(lambda m: m[0] + chr(_MARK + int(m[1])), source))
        marked, hidden = unmarked(marked)
        losses += hidden
        marked = marked.strip(" \n\r")
        pieces, headings, at, size = [], [], 0, 0
        for match in _LEVELLED.finditer(marked):
            pieces.append(marked[at : match.start()])
            size, at = size + len(pieces[-1]), match.start(2)
            if match[2].strip():
                headings.append(Heading(match[2].strip(), size, ord(match[1][-1]) - _MARK + 1))
        text = "".join((*pieces, marked[at:]))
        notes = (f"{path.name} is truncated: it ends within a group",) if depths[-1] > 0 else ()
        title = headings[0].title if headings else ""
        sections = outline(headings, len(text))
        return Document("", text, title, sections, losses=(*losses,), notes=notes)


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
            yield f" ({{{body.lstrip()}}})"
        elif kind in ("listtext", "pntext"):  # the number of an item
            label = re.sub(r"\\tab(?![a-z]) ?", "", body).strip()
            yield f"{{{_BULLET.sub(_SIGN, label)}}} "
        elif kind == "shp":
            for box in _SHAPE_TEXT.finditer(body):
                inner = body[box.end() : _end(body, box.start()) - 1]
                yield f"\\par {{{''.join(_kept(inner, losses))}}}\\par "
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
        depth += _STEPS.get(brace[0], 0)
        if not depth and brace[0] == "}":
            return brace.end()
    return len(source)


def _plain(source: str) -> str:
    from striprtf import striprtf

    library: Any = striprtf  # which has no types
    text = str(library.rtf_to_text(source, "cp1252", errors="replace"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins surrogates
