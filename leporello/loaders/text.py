"""Plain text in any encoding, Markdown with headings as sections, and lines as places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss, Place
from leporello.loaders.files import Format, is_binary
from leporello.text.looks import codec_of, guessed_encoding, marked_encoding, shown_encoding
from leporello.text.outline import Heading, outline

_REPLACED = "\N{REPLACEMENT CHARACTER}"

_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
# Lines that cannot belong to a paragraph that an underline turns into a heading.
_NO_PARAGRAPH = re.compile(
    r"\s*$|\t| {4}| {0,3}(?:>|[-+*]\s|\d{1,9}[.)]\s|\||([-*_])[ \t]*(?:\1[ \t]*){2,}$)"
)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")

_BREAK = re.compile(r"\r\n?|\n")
# Each place is an object in memory, and a log may have millions of lines.
_MOST = 100_000  # places of a file; larger files have several lines per place


@dataclass(frozen=True)
class Text(Format):
    """Plain text, unchanged."""

    suffixes = (".txt", ".text", ".log")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the unchanged text, including line endings."""
        return decoded(data, path, self.encoding, "Text")


def decoded(data: bytes, path: Path, encoding: str = "", loader: str = "") -> Document:
    """Decodes a file; a guessed encoding becomes a note, undecodable bytes become a loss.

    A byte order mark wins over `encoding`. `loader` is the class, if it has a parameter `encoding`.
    Raises UserError if the file is not text, or the encoding is unknown.
    """
    try:
        name, skipped = marked_encoding(data) or (encoding and codec_of(encoding), 0)
    except LookupError:
        message = f"{path}: unknown encoding {encoding!r}; use a name such as cp1252"
        raise UserError(message) from None
    body = data[skipped:]
    notes: tuple[str, ...] = ()
    if not name:
        guessed = guessed_encoding(body)
        if not guessed.startswith("utf") and is_binary(data):
            raise UserError(f"{path}: cannot be read: it looks like binary data")
        note = f"{path.name} is not UTF-8 and declares no encoding: read as"
        fix = f"set loader {{class: {loader}, encoding: …}}" if loader else "convert it to UTF-8"
        hint = f"if that is wrong, {fix}"
        notes = (f"{note} {shown_encoding(guessed)}; {hint}",) if guessed else ()
        name = guessed or "utf-8"
    text = body.decode(name, "replace")
    original = body.count(_REPLACED.encode(name)) if name.startswith("utf") else 0
    text = text.replace("\0", _REPLACED)  # tokenizers refuse NUL
    bad = text.count(_REPLACED) - original
    why = f"not {shown_encoding(name)}; replaced by {_REPLACED}"
    losses = (Loss("undecodable bytes", why, characters=bad, count=bad),) if bad > 0 else ()
    return Document("", text, losses=losses, notes=notes)


@dataclass(frozen=True)
class Markdown(Format):
    """Markdown: the unchanged text, with headings as sections."""

    suffixes = (".md", ".markdown")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Document:
        """Returns the text with a section for each ATX (`#`) and setext (underlined) heading.

        The rules are CommonMark's; headings inside code, quotes and lists are ignored. The title is
        the first heading of level 1.
        """
        raw = decoded(data, path, self.encoding, "Markdown")
        text = raw.text
        headings = list(_headings(text))
        title = next((heading.title for heading in headings if heading.level == 1), "")
        return replace(raw, title=title, sections=outline(headings, len(text)))


def _headings(text: str) -> Iterator[Heading]:
    paragraph: int | None = None  # where the paragraph that may be a setext heading began
    for start, line in _lines_outside_code(text):
        if atx := _ATX.fullmatch(line):
            yield Heading(atx[2] or "", start, len(atx[1]))
            paragraph = None
        elif paragraph is not None and (under := _UNDERLINE.fullmatch(line)):
            title = " ".join(text[paragraph:start].split())
            yield Heading(title, paragraph, 1 if under[1] else 2)
            paragraph = None
        elif _NO_PARAGRAPH.match(line):
            paragraph = None
        elif paragraph is None:
            paragraph = start


def _lines_outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Yields (start, line) of lines outside fences; a fence becomes an empty line."""
    front = _FRONT_MATTER.match(text)
    fence = ""
    for match in _LINE.finditer(text, front.end() if front else 0):
        line = match[1]
        mark = _FENCE.match(line)
        if fence:
            closes = mark and mark[1].startswith(fence) and not line[mark.end() :].strip()
            fence = "" if closes else fence
        elif mark:
            fence = mark[1]
            yield match.start(), ""
        else:
            yield match.start(), line


def line_starts(text: str) -> list[int]:
    """Returns the starts of the lines; the end of the text is not one of them."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    return starts[:-1] if starts[-1] == len(text) else starts


def line_places(text: str) -> tuple[Place, ...]:
    """Returns one place per line, `line 120`; in a huge text per few lines, `lines 1–4`."""
    starts = line_starts(text)
    step = len(starts) // _MOST + 1
    ends = [*starts[step::step], len(text)]
    return tuple(
        Place(f"line {n + 1}" if step == 1 else f"lines {n + 1}–{n + step}", starts[n], end)
        for n, end in zip(range(0, len(starts), step), ends, strict=False)
    )
