"""Chunks of complete rows of tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from leporello import Document, Span
from leporello.chunkers.lines import line_starts
from leporello.chunkers.packing import packed_within, units
from leporello.core.protocols import ModelSource, Positive


@dataclass(frozen=True)
class Rows:
    """Packs complete rows of a table into chunks of at most `size` tokens, sheet by sheet.

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
        # Sheets stay apart, since their columns have other names.
        fences = [*rows.starts.searchsorted(_sheets(document)).tolist(), len(rows)]
        # A chunk with rows of two sheets would mix tables with different columns.
        return packed_within(rows, pairwise(fences), self.size)


def _sheets(document: Document) -> list[int]:
    """Returns the offsets at which sheets begin; cells are named `SHEET!CELL`."""
    starts, sheet = [0], None
    for place in document.places:
        name = place.name.rpartition("!")[0]
        if sheet not in (None, name):
            starts.append(place.start)
        sheet = name
    return starts
