"""Reads a page with pdfium: runs of words with their positions, pictures and notes."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

# Pages, objects and functions of pdfium, which has no types.
Handle: TypeAlias = Any

HYPHEN = "\u00ad"  # ends a fragment if its word may continue in the next line

# Pdfium marks a hyphen that ends a line, and leaves out the line's end.
_WORD = re.compile("[^\\s\0\2\ufffe]+[\2\ufffe]?|[\2\ufffe]")
_UNDECODABLE = re.compile("[\ufffd\ue000-\uf8ff\ud800-\udfff\1-\x08\x0e-\x1f\ufff0-\ufffb]+")
# CMBX and SFBX are TeX's bold fonts; `medium` is not bold, hence the lookahead.
_BOLD = re.compile(r"bold|black|heavy|demi|medi(?!um)|CMBX|SFBX", re.IGNORECASE)
# Whether a page has any of that; most have hyphens.
_ODD = re.compile(f"[ﬀ-ﬆ\u00ad\2\ufffe]|{_UNDECODABLE.pattern}")
_MARK = re.compile("[\2\ufffe]")
# Words with ligatures would match no question; NFKC would also change superscripts and fractions.
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", HYPHEN: ""}
)
# A space is a quarter to a half of the size, also in most justified lines.
_GAP = 0.8  # of the type's size: wider gaps may separate cells or columns
_SAME_LINE = 0.45  # of the type's size: smaller vertical distances are within a line
# Scans may have white margins, and figures rarely fill half a page.
_COVERED = 0.5  # of a page: a larger picture is likely a scan of the page
# Scans that were straightened leave text some degrees off; watermarks are at 45.
_ASLANT = 0.1  # of 90°
# A bound for hostile files; real ones nest two or three.
_NESTED = 15  # forms within forms


@dataclass(slots=True)
class Fragment:
    """Adjacent words in a line, without a wide gap between them.

    Attributes:
        text: Words, separated by spaces.
        x0: Beginning, in points along the line.
        x1: End, in points along the line.
        y: Baseline, in points below the page's upper edge.
        size: Size of the type, in points.
        bold: Whether the type is bold, from the first character to the last.
        order: Position in the order of the file.
    """

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    order: int


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
        words = _FragmentReader(page)
        words.read()
        counts = Counter[int]()
        for fragment, turn in words.fragments:
            counts[turn] += len(fragment.text)
        # The direction of most characters, so a landscape table on a portrait page has lines too.
        main = max(counts, key=counts.__getitem__, default=0)
        west, south, east, north = page.get_bbox()
        edges = sorted(_turned(main, x, y)[1] for x, y in ((west, south), (east, north)))
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


def _turned(turn: int, x: float, y: float) -> tuple[float, float]:
    """Converts a point for text turned by multiples of 90° to positions along and across lines."""
    return ((x, -y), (y, x), (-x, y), (-y, -x), (x, -y))[turn]


class _FragmentReader:
    """Collects the words of a page with as few calls of pdfium as possible."""

    def __init__(self, page: PdfPage) -> None:
        from pypdfium2 import raw

        self.page, self.raw = page, raw
        self.fragments: list[tuple[Fragment, int]] = []
        self.ends: list[int] = []  # number of each fragment's last character
        self.undecodable = 0
        self._x, self._y, self._box = ctypes.c_double(), ctypes.c_double(), raw.FS_RECTF()

    def read(self) -> None:
        self._textpage = textpage = self.page.get_textpage()
        try:
            text = _text(textpage)
            odd = _ODD.search(text) is not None
            end = turn = 0
            for match in _WORD.finditer(text):
                at, stop = match.span()
                if not self.fragments or text[end - 1] in "\2\ufffe" or "\n" in text[end:at]:
                    turn = _quarter(self.raw.FPDFText_GetCharAngle(textpage, at))
                # Most pages have nothing odd; one search of the page saves a search of each word.
                if word := self._decoded(match[0]) if odd else match[0]:
                    self._add_word(word, at, stop - 1, turn)
                end = stop
            for (fragment, _), last in zip(self.fragments, self.ends, strict=True):
                fragment.bold = fragment.bold and _type(textpage, last)[1]
        finally:
            textpage.close()

    def _add_word(self, word: str, first: int, last: int, turn: int) -> None:
        """Adds a word to the last fragment if it follows closely, otherwise begins a fragment."""
        x0, x1, y = self._place(first, last, turn)
        if self.fragments and self.fragments[-1][1] == turn:
            before = self.fragments[-1][0]
            size = before.size
            if -size / 2 < x0 - before.x1 < _GAP * size and abs(y - before.y) < _SAME_LINE * size:
                before.text += f" {word}"
                before.x1 = max(x1, before.x1)
                self.ends[-1] = last
                return
        # Once for each fragment, not each word, since every call of pdfium through ctypes costs
        # time.
        size, bold = _type(self._textpage, first)
        self.fragments.append((Fragment(word, x0, x1, y, size, bold, len(self.fragments)), turn))
        self.ends.append(last)

    def _place(self, first: int, last: int, turn: int) -> tuple[float, float, float]:
        """Returns where a word begins and ends along the line, and its baseline."""
        # Reused, since each word needs it: pages with layout take four times as long as bare
        # pdfium.
        box = self._box
        self.raw.FPDFText_GetCharOrigin(self._textpage, first, self._x, self._y)
        self.raw.FPDFText_GetLooseCharBox(self._textpage, last, box)
        x, y = self._x.value, self._y.value
        if turn == 0:
            return min(x, box.left), max(x, box.right), -y
        x, y = _turned(turn, x, y)
        ends = [
            _turned(turn, *corner)[0] for corner in ((box.left, box.bottom), (box.right, box.top))
        ]
        return min(x, *ends), max(x, *ends), y

    def _decoded(self, word: str) -> str:
        """Decodes a word; each run of undecodable characters becomes U+FFFD."""
        word = _MARK.sub(HYPHEN, word.translate(_LIGATURES))
        if not _UNDECODABLE.search(word):
            return word
        self.undecodable += sum(map(len, _UNDECODABLE.findall(word)))
        word = _UNDECODABLE.sub("\ufffd", word)
        return "" if word == "\ufffd" else word


def _text(textpage: Handle) -> str:
    """Returns the page's characters, one for each that pdfium counts."""
    from pypdfium2 import raw

    count = textpage.count_chars()
    buffer = ctypes.create_string_buffer((2 * count + 1) * 2)
    units = raw.FPDFText_GetText(
        textpage, 0, count, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort))
    )
    text = buffer.raw[: 2 * max(units - 1, 0)].decode("utf-16-le", "replace")
    # Characters beyond 16 bits take two units, which would shift all later offsets.
    if len(text) == count:
        return text
    codes = (raw.FPDFText_GetUnicode(textpage, i) for i in range(count))
    return "".join(chr(code) if code <= sys.maxunicode else "\ufffd" for code in codes)


def _quarter(angle: float) -> int:
    """Returns the rotation of a text in multiples of 90°; 4 if it is slanted."""
    turns = angle / (math.pi / 2)
    return -round(turns) % 4 if abs(turns - round(turns)) < _ASLANT else 4


def _type(textpage: Handle, at: int) -> tuple[float, bool]:
    """Returns the size in points of a character's type, and whether it is bold."""
    from pypdfium2 import raw

    matrix = raw.FS_MATRIX()
    size = raw.FPDFText_GetFontSize(textpage, at)
    if raw.FPDFText_GetMatrix(textpage, at, matrix):
        size *= math.hypot(matrix.c, matrix.d)
    name = ctypes.create_string_buffer(100)
    raw.FPDFText_GetFontInfo(textpage, at, name, 100, None)
    return max(size, 1.0), _BOLD.search(name.value.decode("latin-1")) is not None


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

    # The text of a link is on the page already; a pop-up repeats the comment that it belongs to.
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
