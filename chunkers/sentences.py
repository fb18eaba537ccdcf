"""Chunks of complete sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Span
from leporello.chunkers.packing import divided, pack, units
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.text.sentences import sentence_starts


@dataclass(frozen=True)
class Sentences:
    """Packs complete sentences into chunks of at most `size` tokens.

    At most `size` of the document's tokens start within a chunk: a longer sentence is cut between
    tokens, and its pieces are packed like sentences. A blank line always ends a sentence.

    Attributes:
        size: Maximum number of tokens per chunk.
        overlap: Number of sentences at the end of a chunk that the next chunk repeats; fewer if
            the sentence after them would not fit.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = units(document, self.tokenizer, sentence_starts(document.text))
        # A table or list without stops is one sentence, of any length.
        pieces = divided(document, self.tokenizer, pieces, self.size)
        return pack(pieces, self.size, lambda unit: max(0, unit - self.overlap))
