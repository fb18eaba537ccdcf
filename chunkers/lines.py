"""Chunks of complete lines, and of complete rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from leporello import Document, Span
from leporello.chunkers.packing import divided, pack, packed_within, units
from leporello.core.protocols import ModelSource, Positive


@dataclass(frozen=True)
class Lines:
    """Packs complete lines into chunks of at most `size` tokens; for dialogue, tables, logs.

    At most `size` of the document's tokens start within a chunk, unless a longer line is not
    split. Lines end where `str.splitlines` ends them: CR, LF, CRLF, U+2028 and the like.

    Attributes:
        size: Maximum number of tokens per chunk.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        split_long: Whether a line of more than `size` tokens is cut between tokens, and its pieces
            packed like lines; otherwise the line is one chunk.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"
    split_long: bool = True

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        lines = units(document, self.tokenizer, line_starts(document.text))
        if self.split_long:
            lines = divided(document, self.tokenizer, lines, self.size)
        return pack(lines, self.size)


def line_starts(text: str) -> list[int]:
    """Returns the offsets at which lines begin, and the length of the text."""
    return list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))


_ROW = re.compile(r".*!|row \d")  # places of rows and cells: `Costs!B7`, `row 7`


@dataclass(frozen=True)
class Rows:
    """Packs complete rows of a table into chunks of at most `size` tokens, table by table.

    The loaders Csv and Sheets write the columns' names into each row, `Item: Rent  Amount: 900`, so
    that a chunk explains its figures. A row of more than `size` tokens is one chunk. A text without
    rows is divided at its lines.

    Attributes:
        size: Maximum number of tokens per chunk.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        rows = units(document, self.tokenizer, line_starts(document.text))
        # Tables stay apart, since their columns have other names.
        fences = [*rows.starts.searchsorted(_tables(document)).tolist(), len(rows)]
        return packed_within(rows, pairwise(fences), self.size)


def _tables(document: Document) -> list[int]:
    """Returns the offsets at which tables begin: after blank lines, if the document has rows."""
    if not any(_ROW.match(place.name) for place in document.places):
        return [0]
    return [0, *(gap.end() for gap in re.finditer("\n\n", document.text))]
