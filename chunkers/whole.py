"""The document as one chunk, or as the parts that its data divides it into."""

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


@dataclass(frozen=True)
class Parts:
    """The document's own parts, one a chunk: paragraphs of style change, reviews, summaries.

    What lies outside the parts is in no chunk; a document without parts is an error.
    """

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the parts in document order.

        Raises:
            ValueError: The document has text, and no parts.
        """
        if document.text.strip() and not document.parts:
            raise ValueError(
                f"document {document.id!r} has no parts: its task gives none; use Paragraphs, or"
                " another chunker that divides the text itself"
            )
        yield from sorted(document.parts)
