"""Chunks of complete rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from leporello import Document, Span
from leporello.chunkers.lines import line_starts
from leporello.chunkers.packing import packed_within, units
from leporello.core.protocols import ModelSource, Positive

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
