"""Chunks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from chunkers.packing import pack, refine, token_units, units
from leporello import Document, Span
from leporello.stages import ModelSource, Positive

__all__ = ["Lines", "line_starts"]


@dataclass(frozen=True)
class Lines:
    """Whole lines, as many as have no more than `size` tokens; for dialogue, tables, logs.

    No more than `size` of the document's tokens start inside a chunk, except where a longer line
    is kept whole. Lines end where `str.splitlines` ends them: CR, LF, CRLF, U+2028 and the like.

    Attributes:
        size: Tokens a chunk.
        tokenizer: What counts: `words`, or a Hugging Face tokenizer by path or hub id.
        split_long: Whether a line of more than `size` tokens is cut between tokens, its parts
            packed like lines; otherwise it makes a chunk by itself.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"
    split_long: bool = True

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        lines = units(document, self.tokenizer, line_starts(document.text))
        if self.split_long:
            tokens = token_units(document, self.tokenizer)
            lines = units(document, self.tokenizer, refine(lines, tokens, self.size))
        return pack(lines, self.size)


def line_starts(text: str) -> list[int]:
    """Returns where lines begin, the end of the text included."""
    return list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))
