"""Chunkers of complete documents, and of the parts that a task divides a document into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Span


@dataclass(frozen=True)
class Whole:
    """The complete document as one chunk; no chunk if the document is blank."""

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the span of the text without the white space around it."""
        text = document.text
        if end := len(text.rstrip()):
            yield Span(len(text) - len(text.lstrip()), end)


@dataclass(frozen=True)
class Parts:
    """The document's parts, one per chunk: paragraphs of style change, reviews, summaries.

    Text outside the parts is in no chunk; a document without parts is an error.
    """

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the parts in document order.

        Raises:
            ValueError: The document has text, but no parts.
        """
        # Not one chunk instead: a whole book as one part would fail much later, or give a wrong
        # score.
        if document.text.strip() and not document.parts:
            raise ValueError(
                f"document {document.id!r} has no parts, since its task does not define any: use"
                " Paragraphs, or another chunker that divides the text itself"
            )
        yield from sorted(document.parts)
