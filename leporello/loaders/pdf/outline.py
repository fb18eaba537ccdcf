"""Text of a PDF's lines with paragraphs, and its outline: bookmarks or larger type."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leporello.loaders.pdf.layout import PageLine, Pages
from leporello.loaders.pdf.words import HYPHEN
from leporello.text.outline import Heading

if TYPE_CHECKING:
    from pypdfium2 import PdfDest, PdfDocument


_WORD = re.compile(r"[^\W\d_]+(?:[-‐’'][^\W\d_]+)*")
_HYPHENS = ("-", "‐", HYPHEN)
_HYPHENATED = re.compile(rf"(?<![^\W_])([^\W_]++)[-‐{HYPHEN}]$")
_PARTED = re.compile(rf"(?<![^\W\d_])([^\W\d_]++){HYPHEN}(?=([^\W\d_]++))")
_BEGINNING = re.compile(r"[^\W\d_]+")
_LEADERS = re.compile(r" ?(?:\. ?){8,}+(\t|\Z)?")  # dots between a label and its figure
_ENDS = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")


@dataclass(slots=True)
class Written:
    """Text of all pages."""

    text: str  # text of all pages
    pages: list[int] = field(default_factory=list)  # first character of each page
    # First character of each line, page by page
    starts: list[list[int]] = field(default_factory=list)


def write(pages: Pages) -> Written:
    """Joins the lines of pages to one text, with empty lines between paragraphs.

    A sentence may continue in the next column or page. A hyphen at the end of a line is removed if
    the joined word occurs elsewhere in the document, or if one of its parts occurs nowhere.
    """
    vocabulary = _vocabulary(line.text for page in pages for line in page)
    parts: list[str] = []
    written = Written("")
    length, last = 0, ""
    for page in pages:
        starts: list[int] = []
        for number, line in enumerate(page):
            between, keep = _between(last, line, vocabulary, first=number == 0)
            if parts and not keep:
                parts[-1] = parts[-1][:-1]
                length -= 1
            text = _joined(line.text, vocabulary)
            starts.append(length + len(between))
            parts += [between, text]
            length += len(between) + len(text)
            last = line.text
        written.pages.append(starts[0] if starts else length)
        written.starts.append(starts)
    written.text = "".join(parts)
    return written


def _joined(text: str, vocabulary: set[str]) -> str:
    """Removes hyphens between the lines of a cell, and leading dots."""

    def join(parts: re.Match[str]) -> str:
        return parts[1] + ("" if _is_one_word(parts[1], parts[2], vocabulary) else "-")

    if "...." in text or ". . . ." in text:
        text = _LEADERS.sub(lambda dots: " … " if dots[1] is None else dots[1], text)
    return _PARTED.sub(join, text).replace(HYPHEN, "-") if HYPHEN in text else text


def _between(last: str, line: PageLine, vocabulary: set[str], *, first: bool) -> tuple[str, bool]:
    """Returns the separator of two lines, and whether a hyphen before it stays."""
    if not last:
        return "", True
    before, after = _hyphenated(last), _BEGINNING.match(line.text)
    if before and after and "\t" not in last and "\t" not in line.text:
        return "", not _is_one_word(before[1], after[0], vocabulary)
    continues = after is not None and after[0][0].islower() and not _ENDS.search(last)
    opens = line.opens and not (continues and (first or "\t" not in line.text + last))
    return ("\n\n" if opens or (first and not continues) else "\n"), True


def _hyphenated(line: str) -> re.Match[str] | None:
    """Returns the part of a word before a hyphen at the end of a line."""
    return _HYPHENATED.search(line) if line.endswith(_HYPHENS) else None


def _is_one_word(before: str, after: str, vocabulary: set[str]) -> bool:
    """Returns whether only the end of the line requires the hyphen between two parts."""
    if len(before) == 1 or not before[-1].islower() or not after[0].islower():
        return False  # x-axis, DNA-binding, Chambers-Smith
    first, second = before.lower(), after.lower()
    if first + second in vocabulary:
        return True
    return f"{first}-{second}" not in vocabulary and not {first, second} <= vocabulary


def _vocabulary(lines: Iterable[str]) -> set[str]:
    """Returns the words in small letters, except those that the end of a line may split."""
    vocabulary: set[str] = set()
    parted = False
    for line in lines:
        words = _WORD.findall(_PARTED.sub(" ", line.lower()) if HYPHEN in line else line.lower())
        hyphenated = _hyphenated(line) is not None
        vocabulary.update(words[parted : len(words) - hyphenated])
        parted = hyphenated
    return vocabulary


_MOST = 100_000  # bookmarks
_DEEPEST = 12
_LARGER = 1.1  # times the body's type
_LONGEST = 150  # characters of a heading
_SHARE = 0.25  # of the lines: a larger share cannot be headings

# A line's type: its size in half points, and whether it is bold.
Style = tuple[int, bool]


def of_bookmarks(
    pdf: PdfDocument, pages: Pages, starts: Sequence[Sequence[int]], tops: Sequence[float]
) -> list[Heading]:
    """Returns a heading for each bookmark of the file, at the line of its page with its title.

    `tops` has the upper edge of each page, in points downwards from the file's zero.
    """
    headings: list[Heading] = []
    for entry in itertools.islice(pdf.get_toc(max_depth=_DEEPEST), _MOST):
        title, target = " ".join(entry.get_title().split()), entry.get_dest()
        page = target.get_index() if target else None
        if title and target and page is not None and 0 <= page < len(pages) and starts[page]:
            height = _height(target)
            line = _line_of(title, None if height is None else -height - tops[page], pages[page])
            headings.append(Heading(title, starts[page][line], entry.level + 1))
    return sorted(headings, key=lambda heading: heading.start)


def _height(target: PdfDest) -> float | None:
    """Returns the height on the page to which a bookmark leads, in points upwards; or None."""
    from pypdfium2 import raw

    kind, view = target.get_view()
    place = {raw.PDFDEST_VIEW_XYZ: 1, raw.PDFDEST_VIEW_FITH: 0}.get(kind)
    return (view[place] or None) if place is not None and len(view) > place else None


def _line_of(title: str, y: float | None, lines: Sequence[PageLine]) -> int:
    """Returns the index of the line of a bookmark."""
    letters = _letters(title)
    near = range(len(lines))
    if y is not None:
        near = sorted(near, key=lambda i: abs(lines[i].y - y))  # type: ignore[assignment]
    for i in near:
        text = _letters(lines[i].text)
        if letters and text and (text.startswith(letters) or letters.startswith(text)):
            return i
    below = (i for i, line in enumerate(lines) if y is not None and line.y >= y)
    return next(below, 0)


def _letters(text: str) -> str:
    """Returns a title's letters without its number; the type may lack underscores."""
    return "".join(re.findall(r"[^\W_]", text.lower())).lstrip("0123456789")


def of_types(pages: Pages, starts: Sequence[Sequence[int]]) -> tuple[str, list[Heading]]:
    """Returns the title and the headings by type, with the largest type at level 1."""
    sizes = Counter[Style]()  # characters of each type
    for line in itertools.chain.from_iterable(pages):
        sizes[_style(line)] += len(line.text)
    body, total = max(sizes, key=sizes.__getitem__, default=(0, False)), sum(map(len, pages))
    large = [(page, starts[page][i], style, title) for page, i, style, title in _large(pages, body)]
    if not large or len(large) > _SHARE * total:
        return "", []
    title, largest = "", max(style for _, _, style, _ in large)
    first = [title for page, _, style, title in large if style == largest]
    if len(first) == 1 and large[0][3] == first[0] and large[0][0] == 0:
        title = large.pop(0)[3]
    levels = {s: n for n, s in enumerate(sorted({s for _, _, s, _ in large}, reverse=True), 1)}
    return title, [Heading(text, start, levels[style]) for _, start, style, text in large]


def _style(line: PageLine) -> Style:
    return round(2 * line.size), line.bold


def _large(pages: Pages, body: Style) -> Iterator[tuple[int, int, Style, str]]:
    """Yields page, line, type and text of headings in larger or bolder type."""
    for page, lines in enumerate(pages):
        styles = [*map(_style, lines)]
        i = 0
        while i < len(lines):
            style, first = styles[i], i
            i += 1
            while i < len(lines) and styles[i] == style and not lines[i].opens:
                i += 1
            after = styles[i][0] if i < len(lines) else body[0]
            heads = after >= body[0] - 1 and lines[first].opens
            is_bolder = style[1] and not body[1] and style[0] >= body[0]
            if not heads or not (is_bolder or style[0] > _LARGER * body[0]):
                continue
            title = " ".join(line.text for line in lines[first:i])
            if _is_title(title):
                yield page, first, style, title


def _is_title(text: str) -> bool:
    letters = len(re.findall(r"[^\W\d_]", text))
    plain = "\t" not in text and len(text) <= _LONGEST
    return plain and letters > max(2, len(text) // 3) and not text.endswith((".", ",", ";"))
