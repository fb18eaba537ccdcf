"""The document as one chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Span


@dataclass(frozen=True)
class Whole:
    """The whole document as one chunk; none if it is blank."""

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the span of everything but white space around it."""
        text = document.text
        if end := len(text.rstrip()):
            yield Span(len(text) - len(text.lstrip()), end)
