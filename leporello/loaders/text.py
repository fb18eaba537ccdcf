"""Plain text in any encoding, Markdown with headings as sections, and lines as places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from leporello.core.errors import UserError
from leporello.core.records import Document, Loss, Place
from leporello.loaders.files import Format, is_binary
from leporello.text.looks import codec_of, guessed_encoding, marked_encoding, shown_encoding
from leporello.text.outline import Heading, outline

_REPLACED = "\N{REPLACEMENT CHARACTER}"

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")

_BREAK = re.compile(r"\r\n?|\n")
# Each place is an object in memory, and a log may have millions of lines.
_MOST = 100_000  # places of a file


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
    """Yields the headings outside of quotes and lists."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.disable("inline")  # titles keep their markup
    front = _FRONT_MATTER.match(text)
    begin = front.end() if front else 0
    starts = line_starts(text[begin:])
    for heading, title in pairwise(parser.parse(text[begin:])):
        if heading.type == "heading_open" and heading.level == 0 and heading.map:
            start = begin + starts[heading.map[0]]
            yield Heading(title.content.replace("\n", " "), start, int(heading.tag[1]))


def line_starts(text: str) -> list[int]:
    """Returns the starts of the lines; the end of the text is not one of them."""
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    return starts[:-1] if starts[-1] == len(text) else starts


def line_places(text: str) -> tuple[Place, ...]:
    """Returns one place per line, `line 120`; a huge text has no places."""
    starts = line_starts(text)
    if len(starts) > _MOST:
        return ()
    bounds = pairwise([*starts, len(text)])
    return tuple(Place(f"line {n}", start, end) for n, (start, end) in enumerate(bounds, 1))
