"""Markdown: the text as it stands, its headings as sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.loaders.files import Format
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted, Heading, outline

_LINE = re.compile(r"([^\r\n]*)(?:\r\n?|\n|\Z)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
# What cannot be part of a paragraph that an underline turns into a heading.
_NO_PARAGRAPH = re.compile(
    r"\s*$|\t| {4}| {0,3}(?:>|[-+*]\s|\d{1,9}[.)]\s|\||([-*_])[ \t]*(?:\1[ \t]*){2,}$)"
)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")


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
