"""Pages of a PDF: text, furniture, scans and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from leporello.core.records import Loss
from leporello.loaders.pdf import drawn
from leporello.loaders.pdf.characters import Characters
from leporello.loaders.pdf.fragments import Fragment, turned_box, upright
from leporello.loaders.pdf.furniture import furniture
from leporello.loaders.pdf.layout import PageLine, lines
from leporello.loaders.pdf.objects import Note, page_notes, page_objects
from leporello.loaders.pdf.ruled import with_rows
from leporello.loaders.pdf.words import WordReader

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_STAMP = 100  # characters on a scan; shorter text is only a stamp
_NAMED = 5  # ranges of pages that a place names
_SMALLEST = 1 / 1500  # of the page: smaller type is not seen


@dataclass(slots=True)
class PageText:
    """Text of a page."""

    lines: list[PageLine]  # lines in reading order
    top: float = 0.0  # upper edge, in points downwards from the file's zero
    height: float = 0.0  # height in points
    undecodable: int = 0  # number of characters without a known letter
    pictures: int = 0  # number of pictures
    scanned: bool = False  # whether a picture covers most of the page
    blank: bool = False  # whether the page is empty
    fault: str = ""  # reason why the page could not be read
    ocr: bool = False  # whether OCR read the lines
    invisible: bool = False  # whether all text is invisible, without a picture that it describes
    hidden: int = 0  # number of characters that are not seen
    drawings: int = 0  # number of annotations without text
    attachments: list[str] = field(default_factory=list)  # names of attached files
    # Kinds and texts of removed lines
    furniture: list[tuple[str, str]] = field(default_factory=list)

    @property
    def characters(self) -> int:
        """Number of characters of the lines."""
        return sum(len(line.text) for line in self.lines)

    @property
    def lacks_text(self) -> bool:
        """Whether the page likely shows text that was not extracted."""
        is_short = self.characters < _STAMP if self.scanned else not (self.lines or self.furniture)
        return not (self.ocr or self.blank) and (is_short or self.undecodable > self.characters)


def page_text(pdf: PdfDocument, index: int, layers: bool) -> PageText:
    """Returns the text of a page, which may have hidden layers; a broken page has a fault."""
    from pypdfium2 import PdfiumError

    try:
        page = pdf[index]
        try:
            return _read(pdf, page, layers)
        finally:
            page.close()
    except PdfiumError as error:
        return PageText([], fault=str(error))


def _read(pdf: PdfDocument, page: PdfPage, layers: bool) -> PageText:
    west, south, east, north = bounds = page.get_bbox()
    objects = page_objects(page, abs((east - west) * (north - south)) or 1.0, layers)
    boxes = drawn.boxes(objects.paths)
    grids = drawn.grids(boxes)
    with closing(page.get_textpage()) as textpage:
        walls = drawn.Walls(grids) if grids else None
        words = WordReader(Characters(textpage), objects, walls)
        words.read()
    areas = [turned_box(turn, *bounds) for turn in range(5)]
    visible, counts, unseen = list[tuple[Fragment, int]](), Counter[int](), 0
    for fragment, turn in words.fragments:
        if _is_on_page(fragment, areas[turn]):
            visible.append((fragment, turn))
            counts[turn] += len(fragment.text)
        else:
            unseen += len(fragment.text)
    main = max(counts, key=counts.__getitem__, default=0)
    _, top, _, bottom = areas[main]
    if main:
        grids = drawn.grids([turned_box(main, w, -s, e, -n) for w, n, e, s in boxes])
    visible = upright(visible, main)
    fragments = with_rows([f for f, turn in visible if turn == main], grids)
    for fragment in fragments:
        fragment.y -= top
    notes = page_notes(pdf, page)
    extra = [f.text for f, turn in visible if turn != main]
    extra += [note.text for note in notes if note.text and not note.hidden]
    middle = (bottom - top) / 2  # never at an edge
    text = lines(fragments)
    text += (PageLine(part, middle, 1.0, bold=False, opens=True) for part in extra)
    return PageText(
        text, top, bottom - top, words.undecodable,
        objects.pictures, objects.scanned, objects.blank and not notes,
        invisible=0 < objects.texts == len(objects.invisible) and not objects.scanned,
        hidden=words.hidden + unseen + sum(len(note.text) for note in notes if note.hidden),
        drawings=sum(note == Note() for note in notes),
        attachments=[note.attachment for note in notes if note.attachment],
    )  # fmt: skip


def _is_on_page(fragment: Fragment, area: drawn.Box) -> bool:
    """Returns whether a fragment is on the page, in type that is large enough to be seen."""
    west, top, east, bottom = area
    size, y = fragment.size, fragment.y
    if size < 1.0:
        if size < _SMALLEST * max(east - west, bottom - top):
            return False
        fragment.size = 1.0
    return west < fragment.x1 and fragment.x0 < east and top < y and y - size < bottom


def take_furniture(texts: Sequence[PageText]) -> None:
    """Removes page headers, footers and page numbers, unless no other text would remain."""
    kinds = furniture([page.lines for page in texts], [page.height for page in texts])
    if all(len(page.lines) == len(removed) for page, removed in zip(texts, kinds, strict=True)):
        return
    for page, removed in zip(texts, kinds, strict=True):
        page.furniture += [(kind, page.lines[i].text) for i, kind in removed.items()]
        page.lines = [line for i, line in enumerate(page.lines) if i not in removed]


def page_names(pdf: PdfDocument) -> list[str]:
    """Returns the names of pages: the file's labels if they are unique, otherwise numbers."""
    labels = [pdf.get_page_label(i).strip() for i in range(len(pdf))]
    if not all(labels) or len({*labels}) < len(labels):
        labels = [str(number) for number in range(1, len(labels) + 1)]
    return [f"p. {label}" for label in labels]


def losses(pages: Sequence[PageText], names: Sequence[str], unread: str) -> list[Loss]:
    """Returns one loss per kind, which names all its pages."""
    lengths = [page.characters for page in pages if page.characters and not page.lacks_text]
    mean_length = round(fmean(lengths)) if lengths else 0
    kinds: dict[str, list[tuple[int, Loss]]] = {}
    for i, page in enumerate(pages):
        for loss in _of_page(page, mean_length, unread):
            kinds.setdefault(loss.what, []).append((i, loss))
    return [_together(same, names) for same in kinds.values()]


def _of_page(page: PageText, mean_length: int, unread: str) -> Iterator[Loss]:
    """Yields the losses of a page; a page without text counts the mean characters of the others."""
    if page.fault:
        yield Loss("broken page", page.fault, characters=mean_length)
    elif page.undecodable:
        why = "OCR did not recognise them" if page.ocr else "the font does not define the letters"
        yield Loss("undecodable character", why, "", page.undecodable, page.undecodable)
    elif page.lacks_text:
        yield Loss("page without text", unread, characters=mean_length)
    elif page.ocr and not page.lines:
        yield Loss("page without text", "OCR found no text")
    if page.pictures and not page.lacks_text:
        yield Loss("image", "images are not read", count=page.pictures)
    if page.hidden:
        why = "it is invisible, white on white, tiny, outside the page or on a hidden layer"
        yield Loss("hidden text", why, characters=page.hidden)
    if page.drawings:
        why = "drawings, stamps and media without a comment are not read"
        yield Loss("annotation", why, count=page.drawings)
    for kind, text in page.furniture:
        why = f"is at the edge of many pages, for example: {text}"
        yield Loss(kind, why, characters=len(text), furniture=True)


def _together(entries: Sequence[tuple[int, Loss]], names: Sequence[str]) -> Loss:
    first = entries[0][1]
    characters, count = (
        sum(getattr(loss, name) for _, loss in entries) for name in ("characters", "count")
    )
    place = _place(sorted({i for i, _ in entries}), names)
    return Loss(first.what, first.why, place, characters, count, first.furniture)


def _place(pages: Sequence[int], names: Sequence[str]) -> str:
    """Returns the names of pages with ranges: `p. 3, p. 5 to p. 9`."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][-1] + 1:
            runs[-1].append(page)
        else:
            runs.append([page])
    parts = [" to ".join(dict.fromkeys((names[run[0]], names[run[-1]]))) for run in runs]
    more = len(parts) - _NAMED
    return ", ".join(parts[:_NAMED]) + (f" and {more} more" if more > 0 else "")
