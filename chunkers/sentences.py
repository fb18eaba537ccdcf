"""Chunks of whole sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Span
from leporello.chunkers.packing import divided, pack, units
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.text.sentences import sentence_starts


@dataclass(frozen=True)
class Sentences:
    """Whole sentences, as many as have no more than `size` tokens.

    No more than `size` of the document's tokens start inside a chunk: a sentence that has more
    is cut between tokens, and its parts are packed like sentences. A blank line always ends a
    sentence.

    Attributes:
        size: Number of tokens a chunk at most.
        overlap: Number of a chunk's last sentences that the next one begins with; fewer where the
            next sentence would not fit behind them.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = units(document, self.tokenizer, sentence_starts(document.text))
        pieces = divided(document, self.tokenizer, pieces, self.size)
        return pack(pieces, self.size, lambda unit: max(0, unit - self.overlap))
