"""Chunks of a fixed number of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chunkers.packing import check_overlap, pack, token_units
from leporello import Document, Span
from leporello.stages import Count, ModelSource, Positive

__all__ = ["FixedTokens"]


@dataclass(frozen=True)
class FixedTokens:
    """Chunks of `size` tokens, cut between tokens, wherever that is in a sentence.

    No more than `size` of the document's tokens start inside a chunk, except where a single
    character has more tokens than that: characters are never divided, nor are groups of tokens
    that share one. Text that the tokenizer drops stays with the token before it.

    Attributes:
        size: Tokens a chunk; the last one has what is left.
        overlap: How many of a chunk's last tokens the next one begins with.
        tokenizer: What counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"

    def __post_init__(self) -> None:
        check_overlap(self.overlap, self.size)

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = token_units(document, self.tokenizer)
        return pack(pieces, self.size, lambda unit: pieces.back(unit, self.overlap))
