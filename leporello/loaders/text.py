"""Plain text in any encoding, Markdown with its headings as sections, and lines as places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.core.errors import UserError
from leporello.core.records import Loss, Place
from leporello.loaders.files import Format, is_binary
from leporello.text.looks import guessed_encoding, marked_encoding
from leporello.text.outline import Extracted, Heading, outline

_REPLACED = "\N{REPLACEMENT CHARACTER}"


_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
# What cannot be part of a paragraph that an underline turns into a heading.
_NO_PARAGRAPH = re.compile(
    r"\s*$|\t| {4}| {0,3}(?:>|[-+*]\s|\d{1,9}[.)]\s|\||([-*_])[ \t]*(?:\1[ \t]*){2,}$)"
)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")


_BREAK = re.compile(r"\r\n?|\n")
_MOST = 100_000  # places of a file; beyond, a place is of several lines


@dataclass(frozen=True)
class Text(Format):
    """Plain text, to the character.

    Attributes:
        encoding: Encoding of files without a byte order mark; where it is empty, UTF-8, or what a
            file looks like that is none.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".txt", ".text", ".log")

    encoding: str = ""

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text as it stands, line endings included.

        Raises:
            UserError: It is no text; or there is no such encoding.
        """
        return decoded(data, path, self.encoding)


def decoded(data: bytes, path: Path, encoding: str = "") -> Extracted:
    """Returns the text of a file; what was guessed is a note, what is in no encoding a loss.

    Args:
        data: Bytes of the file; a byte order mark wins over `encoding`, and is left out.
        path: Path of the file.
        encoding: Encoding as it is declared; guessed where it is empty.

    Raises:
        UserError: It is no text; or there is no such encoding.
    """
    name, skipped = marked_encoding(data) or (encoding, 0)
    body = data[skipped:]
    notes: tuple[str, ...] = ()
    if not name:
        guessed = guessed_encoding(body)
        if not guessed.startswith("utf") and is_binary(data):
            raise UserError(f"{path}: is not read: it looks like binary data")
        told = f"{path.name} is not UTF-8 and says no encoding: read as {guessed.upper()}; if that"
        notes = (f"{told} is wrong, give loader {{class: Text, encoding: …}}",) if guessed else ()
        name = guessed or "utf-8"
    try:
        text = body.decode(name)
    except LookupError:
        raise UserError(
            f"{path}: there is no encoding {name!r}; name one, such as cp1252"
        ) from None
    except UnicodeDecodeError:
        text = body.decode(name, "replace")
    own = body.count(_REPLACED.encode(name)) if name.startswith("utf") else 0
    text = text.replace("\0", _REPLACED)  # no tokenizer takes a NUL
    bad = text.count(_REPLACED) - own
    why = f"not {name.upper()}; {_REPLACED} stands for them"
    losses = (Loss("undecodable bytes", why, characters=bad, count=bad),) if bad > 0 else ()
    return Extracted(text, losses=losses, notes=notes)


@dataclass(frozen=True)
class Markdown(Format):
    """Markdown: the text as it stands, its headings as sections."""

    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text with a section for each ATX (`#`) and setext (underlined) heading.

        The rules are CommonMark's for documents' own headings; headings inside code, quotes and
        lists are none. The title is the first heading of level 1.

        Raises:
            UserError: The bytes are not text in a known encoding.
        """
        raw = decoded(data, path)
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
    """Yields (start, line) of lines outside fences; a fence itself stands as an empty line."""
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
    """Returns where the lines begin, the first at 0; none begins where the text ends."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    return starts[:-1] if starts[-1] == len(text) else starts


def line_places(text: str) -> tuple[Place, ...]:
    """Returns a place for each line, `line 120`; in a huge text for each few, `lines 1–4`."""
    starts = line_starts(text)
    step = len(starts) // _MOST + 1
    ends = [*starts[step::step], len(text)]
    return tuple(
        Place(f"line {n + 1}" if step == 1 else f"lines {n + 1}–{n + step}", starts[n], end)
        for n, end in zip(range(0, len(starts), step), ends, strict=False)
    )
