"""Chunks of complete paragraphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from leporello import Document, Span
from leporello.chunkers.lines import line_starts
from leporello.chunkers.packing import Units, divided, pack, spans, units
from leporello.core.protocols import Count, ModelSource
from leporello.text.sentences import sentence_starts


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs, which blank lines separate: one per chunk, or as many as fit.

    With a size, at most `size` of the document's tokens start within a chunk: a longer paragraph
    is divided into sentences, a longer sentence between tokens, and the pieces are packed like
    paragraphs. Paragraphs with tabs are tables, which are divided into rows.

    Attributes:
        size: Maximum number of tokens per chunk; 0 makes each paragraph a chunk, however long.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Count = 0
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = units(document, self.tokenizer, _paragraph_starts(document.text))
        if not self.size:
            return spans(pieces)
        sentences = [*_sentence_starts(pieces, self.size)]
        return pack(divided(document, self.tokenizer, pieces, self.size, sentences), self.size)


def _sentence_starts(paragraphs: Units, size: int) -> Iterator[int]:
    """Yields the offsets at which sentences or rows begin in paragraphs of more tokens."""
    text, ends = paragraphs.text, [*paragraphs.starts[1:].tolist(), len(paragraphs.text)]
    for number in (paragraphs.through - paragraphs.before > size).nonzero()[0].tolist():
        start, end = int(paragraphs.starts[number]), ends[number]
        if text.find("\t", start, end) < 0:
            yield from sentence_starts(text, start, end)
        else:
            yield from (start + row for row in line_starts(text[start:end]))


def _paragraph_starts(text: str) -> list[int]:
    """Returns the ends of blank lines, at which paragraphs begin."""
    lines = pairwise(line_starts(text))
    return [end for start, end in lines if text[start:end].isspace()]
