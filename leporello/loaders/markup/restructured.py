"""reStructuredText: the text as it stands, its headings as sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from leporello.loaders.files import Format
from leporello.loaders.text import decoded
from leporello.text.outline import Extracted, Heading, outline

__all__ = ["RestructuredText"]

_HEADING = re.compile(
    r"^(?:(?P<over>([=\-`:.'\"~^_*+#<>!$%&,/;?@|])\2+)[ \t]*\r?\n)?"
    r"(?P<title>[ \t]*[^\s].*?)[ \t]*\r?\n"
    r"(?P<under>([=\-`:.'\"~^_*+#<>!$%&,/;?@|])\5+)[ \t]*(?=\r?\n|\Z)",
    re.M,
)


@dataclass(frozen=True)
class RestructuredText(Format):
    """reStructuredText: the text as it stands, its headings as sections."""

    suffixes: ClassVar[tuple[str, ...]] = (".rst", ".rest")

    def extract(self, data: bytes, path: Path) -> Extracted:
        """Returns the text with a section for each underlined title.

        Raises:
            UserError: It is no text.
        """
        raw = decoded(data, path)
        headings = [*_headings(raw.text)]
        title = headings[0].title if headings else ""
        return replace(raw, title=title, sections=outline(headings, len(raw.text)))


def _headings(text: str) -> Iterator[Heading]:
    """Yields titles; their levels are those in which their rules first come."""
    styles: list[tuple[str, bool]] = []
    for found in _HEADING.finditer(text):
        over, title, under = found["over"], found["title"], found["under"]
        before = text[: found.start()].rpartition("\n")[0][-200:].rpartition("\n")[2]
        indented = title[:1].isspace() and not over
        same = not over or over.rstrip() == under
        if indented or not same or len(under) < len(title.strip()) or (before.strip() and not over):
            continue
        style = (under[0], bool(over))
        styles += [] if style in styles else [style]
        yield Heading(title.strip(), found.start(), styles.index(style) + 1)
