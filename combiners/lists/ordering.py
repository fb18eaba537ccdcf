"""What combiners that put texts in order share: the texts, failed reads, and the answer's form."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leporello.combiners.algorithms.retry_halves import Attempt, succeeded
from leporello.combiners.stuff import chunks_of
from leporello.core.notes import note
from leporello.core.records import Chunk, Example, Hit

_MOST = 300
_LABEL = re.compile(r"\s*(\w+) (\d{1,9}):\s*")


def items(example: Example, hits: Sequence[Hit]) -> list[Chunk]:
    """Returns the chunks that are put in order, in the document's order, each once.

    Where each begins with the same word and its own number (`Summary 1:`, `Summary 2:`, …, as in
    BookSumSort), this is left out: it tells the order that was given.

    Raises:
        ValueError: The document has parts, and the hits are not all of them.
    """
    chunks = chunks_of(hits)
    parts = sorted(set(example.document.parts))
    if parts and [chunk.span for chunk in chunks] != parts:
        raise ValueError(
            f"document {example.document.id!r} has {len(parts)} parts, which are what is put in"
            f" order, and the {len(chunks)} hits are not these; use the chunker Parts and the"
            " retriever All"
        )
    labels = [_LABEL.match(chunk.text) for chunk in chunks]
    words = {label[1] for label in labels if label}
    numbers = [int(label[2]) if label else 0 for label in labels]
    if len(words) != 1 or numbers != list(range(1, len(chunks) + 1)):
        return chunks
    return [
        chunk.document.chunk(chunk.start + label.end(), chunk.end) if label else chunk
        for chunk, label in zip(chunks, labels, strict=True)
    ]


def check_pairs(count: int, instead: str) -> None:
    """Refuses to compare each of very many texts with each other.

    Args:
        count: Number of texts.
        instead: Advice on what to do, for the message.

    Raises:
        ValueError: There are more than 300 of them.
    """
    if count > _MOST:
        raise ValueError(
            f"{count:,} passages are {count * (count - 1):,} pairs to read; up to {_MOST} passages"
            f" can be compared so: {instead}"
        )


def answer(order: Sequence[int]) -> str:
    """Returns an order of places from 0 as ids from 1, as ZeroSCROLLS has it: `3, 1, 2`."""
    return ", ".join(str(index + 1) for index in order)


def check_attempts(attempts: Sequence[Attempt]) -> None:
    """Notes that some reads failed.

    Raises:
        Exception: All did; the first one's error.
    """
    if None in succeeded(attempts):
        note("some of what was to be compared could not be read, and decides nothing")
