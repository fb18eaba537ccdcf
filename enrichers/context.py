"""What a reader needs to know before a chunk: where it stands, and whom it speaks of."""

from __future__ import annotations

import re

from leporello.core.records import Chunk, Document
from leporello.text.outline import heading

_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]+(?:\s[^\W\d_a-z][\w'’-]+){0,3}")
_OPENS = re.compile(
    r"(?:^|[.!?…:\n])(?:[^\S\n]|[\"“'’(])*+$"
)  # behind it a word has a capital anyhow
_BEFORE = 1500  # characters that are looked at for who was last named
_NAMES = 2


def place(document: Document, chunk: Chunk) -> str:
    """Returns the document's title and the headings around a chunk, empty if there are none."""
    return " > ".join(filter(None, (document.title, heading(document, chunk.start))))


def last_names(document: Document, chunk: Chunk) -> list[str]:
    """Returns who was last named before a chunk and is not named in it, the last one first."""
    before = document.text[max(0, chunk.start - _BEFORE) : chunk.start]
    found = (
        " ".join(match.group().split())
        for match in _NAME.finditer(before)
        if " " in match.group()
        or not _OPENS.search(before, max(0, match.start() - 9), match.start())
    )
    names = reversed([*found])
    new = (name for name in dict.fromkeys(names) if name.split()[-1] not in chunk.text)
    return [name for name, _ in zip(new, range(_NAMES), strict=False)]
