"""Ordering of texts: the texts, failed reads, the answer's form, and Kemeny and Young's rule."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.combiners.stuff import chunks_of
from leporello.core.errors import failed_reads
from leporello.core.notes import note
from leporello.core.records import Chunk, Example, Hit, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    """Raises `ValueError`, with advice, where more than 300 texts would be compared in pairs."""
    if count > _MOST:
        raise ValueError(
            f"{count:,} passages are {count * (count - 1):,} pairs to read; up to {_MOST} passages"
            f" can be compared so: {instead}"
        )


def answer(order: Sequence[int]) -> str:
    """Returns an order of places from 0 as ids from 1, as ZeroSCROLLS has it: `3, 1, 2`."""
    return ", ".join(str(index + 1) for index in order)


def check_failed(outputs: Sequence[Reply]) -> None:
    """Notes that some reads failed.

    Raises:
        ReadError: All did; the first one's error.
    """
    if failed_reads(outputs):
        note("some of what was to be compared could not be read, and decides nothing")


_EXACT = 12  # of so many, all 2 ** 12 sets are looked at
_CRUMB = 1e-9  # what sums of floats differ by, though they are equal


def most_agreed(preferences: NDArray[np.float64]) -> list[int]:
    """Returns the order with the largest sum of preferences of earlier over later ones.

    Log odds of independent comparisons make it the likeliest order. It is exact for up to 12; for
    more it is the order by sums (Borda's), improved as long as moving one makes it better. Among
    equals, earlier ones stay earlier.

    Args:
        preferences: Log odds that the row's comes before the column's, shape (n, n), finite.
    """
    import numpy as np

    # Rather than Borda: with independent comparisons it is the likeliest order (decision 23).
    gains = preferences - preferences.T
    np.fill_diagonal(gains, 0.0)
    return _exact(gains) if len(gains) <= _EXACT else _improved(gains)


def _exact(gains: NDArray[np.float64]) -> list[int]:
    """Finds the best last item of every set, and combines these into the complete order.

    A gain is that of putting the row's item before the column's rather than after it.
    """
    count = len(gains)
    best, last = [0.0], [-1]
    for members in range(1, 1 << count):
        inside = [item for item in range(count) if members >> item & 1]
        behind = gains[inside].sum(axis=0)
        totals = [best[members ^ 1 << item] + float(behind[item]) for item in inside]
        top = max(totals)
        # Of those as good, the one that was given last.
        chosen = max(p for p, total in zip(inside, totals, strict=True) if total >= top - _CRUMB)
        best.append(top)
        last.append(chosen)
    order, members = [], (1 << count) - 1
    while members:
        order.append(last[members])
        members ^= 1 << last[members]
    return order[::-1]


def _improved(gains: NDArray[np.float64]) -> list[int]:
    """Moves one after the other to its best place, until nothing is gained."""
    import numpy as np

    order: list[int] = np.argsort(-gains.sum(axis=1).round(9), kind="stable").tolist()
    moved = True
    while moved:
        moved = False
        for item in range(len(order)):
            position = order.index(item)
            others = order[:position] + order[position + 1 :]
            # What each place is worth, the first one nothing: it loses what it stands behind.
            from_first = np.cumsum([0.0, *(-gains[item, others])])
            target = int(from_first.argmax())
            if from_first[target] > from_first[position] + _CRUMB:
                order, moved = [*others[:target], item, *others[target:]], True
    return order
