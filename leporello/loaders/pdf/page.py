"""Reads a page with pdfium: runs of words with their positions, pictures and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello.loaders.pdf.notes import Note, page_notes
from leporello.loaders.pdf.objects import Visibility, page_objects
from leporello.loaders.pdf.words import Fragment, WordReader, turned

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_SMALLEST = 1 / 1500  # of the page: smaller type is not seen

Point = tuple[float, float]


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
        invisible: Whether all text is invisible, without a picture that it describes.
        hidden: Number of characters that are not seen.
        notes: Form fields and comments.
    """

    fragments: list[Fragment]
    turned: list[Fragment]
    top: float = 0.0
    height: float = 0.0
    undecodable: int = 0
    pictures: int = 0
    scanned: bool = False
    blank: bool = False
    invisible: bool = False
    hidden: int = 0
    notes: Sequence[Note] = ()


def raw_page(pdf: PdfDocument, index: int, layers: bool) -> RawPage:
    """Returns a page of a file that may have layers that are switched off.

    Raises:
        PdfiumError: The page is broken.
    """
    page = pdf[index]
    try:
        west, south, east, north = page.get_bbox()
        objects = page_objects(page, abs((east - west) * (north - south)) or 1.0, layers)
        visibility = Visibility(page, objects)
        words = WordReader(page, visibility)
        words.read()
        corners = (west, south), (east, north)
        areas = [_area(turn, corners) for turn in range(5)]
        visible = [(f, turn) for f, turn in words.fragments if _is_on_page(f, areas[turn])]
        hidden = sum(len(f.text) for f, _ in words.fragments) - sum(len(f.text) for f, _ in visible)
        counts = Counter[int]()
        for fragment, turn in visible:
            counts[turn] += len(fragment.text)
        main = max(counts, key=counts.__getitem__, default=0)
        edges = sorted(turned(main, *corner)[1] for corner in corners)
        for fragment, _ in visible:
            fragment.y -= edges[0]
        return RawPage(
            [fragment for fragment, turn in visible if turn == main],
            [fragment for fragment, turn in visible if turn != main],
            edges[0], edges[1] - edges[0], words.undecodable, objects.pictures, objects.scanned,
            objects.blank, visibility.is_layer and not objects.scanned,
            words.hidden + hidden, page_notes(pdf, page),
        )  # fmt: skip
    finally:
        page.close()


def _area(turn: int, corners: tuple[Point, Point]) -> tuple[float, float, float, float]:
    """Returns beginning, end, top and bottom of a page along the lines of a direction."""
    (a, b), (c, d) = (turned(turn, *corner) for corner in corners)
    return min(a, c), max(a, c), min(b, d), max(b, d)


def _is_on_page(fragment: Fragment, area: tuple[float, float, float, float]) -> bool:
    """Returns whether a fragment is on the page, in type that is large enough to be seen."""
    west, east, top, bottom = area
    size, y = fragment.size, fragment.y
    if size < 1.0:
        if size < _SMALLEST * max(east - west, bottom - top):
            return False
        fragment.size = 1.0
    return west < fragment.x1 and fragment.x0 < east and top < y and y - size < bottom
