"""Ordering of texts: the texts, failed reads, the answer's format, and searches for orders."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from leporello.combiners.stuff import chunks_of
from leporello.core.errors import failed_reads
from leporello.core.notes import note
from leporello.core.records import Chunk, Example, Hit, Reply

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 300  # 300 texts are 89,700 reads for one example; with small models these take hours
# Nine digits at most, since longer numbers are not labels.
_LABEL = re.compile(r"\s*(\w+) (\d{1,9}):\s*")


def items(example: Example, hits: Sequence[Hit]) -> list[Chunk]:
    """Returns the chunks to put in order, in document order; raises ValueError for others.

    Headings with the same word and ascending numbers (`Summary 1:`, `Summary 2:`, … in BookSumSort)
    are left out, since they reveal the order of the document.
    """
    chunks = chunks_of(hits)
    parts = sorted(set(example.document.parts))
    # A selection of the parts would make numbers that no reference has.
    if parts and [chunk.span for chunk in chunks] != parts:
        raise ValueError(
            f"document {example.document.id!r} has {len(parts)} parts to put in order, but the"
            f" {len(chunks)} hits are not these; use the chunker Parts and the retriever All"
        )
    labels = [_LABEL.match(chunk.text) for chunk in chunks]
    words = {label[1] for label in labels if label}
    numbers = [int(label[2]) if label else 0 for label in labels]
    # Only if all texts have such labels; otherwise `Chapter 3:` is part of a text (decision 23).
    if len(words) != 1 or numbers != list(range(1, len(chunks) + 1)):
        return chunks
    return [
        chunk.document.chunk(chunk.start + label.end(), chunk.end) if label else chunk
        for chunk, label in zip(chunks, labels, strict=True)
    ]


def check_pairs(count: int, instead: str) -> None:
    """Raises ValueError, with advice, if more than 300 texts would be compared in pairs."""
    if count > _MOST:
        raise ValueError(
            f"{count:,} passages are {count * (count - 1):,} pairs to read; at most {_MOST}"
            f" passages can be compared in pairs: {instead}"
        )


def answer(order: Sequence[int]) -> str:
    """Returns an order of indices from 0 as numbers from 1 in ZeroSCROLLS' format: `3, 1, 2`."""
    return ", ".join(str(index + 1) for index in order)


def check_failed(outputs: Sequence[Reply]) -> None:
    """Notes that some reads failed; raises the first error if all reads failed."""
    # One failed comparison of thousands decides nothing, and the others still order (decision 23).
    if failed_reads(outputs):
        note("some reads of passages to compare failed; these comparisons are ignored")


_EXACT = 12  # largest number of texts for which all sets (2 ** 12) are searched
_BEAM = 100  # partial orders of more texts, since an exact search of 86 has 2 ** 86 sets
_EPSILON = 1e-9  # rounding errors of sums that are equal
# The negative sum of gains and the items of a partial order, by the set of its items and its end.
_Orders: TypeAlias = dict[tuple[int, int], tuple[float, tuple[int, ...]]]


def best_order(gains: NDArray[np.float64], *, from_all: bool = False) -> list[int]:
    """Returns the order with the largest sum of gains; ties go to the lexicographically first.

    A column's item gains from the row's, if this is the item before it, or from all items before
    it. Up to 12 items, the best partial order of each set is extended, so the result is exact (Held
    and Karp 1962); beyond, only the best 100.
    """
    used = 0 if from_all else -1  # the first item of a partial order from which others gain
    orders: _Orders = {(1 << n, 0 if from_all else n): (0.0, (n,)) for n in range(len(gains))}
    for _ in range(len(gains) - 1):
        longer: _Orders = {}
        for (members, _), (negative_sum, order) in orders.items():
            for item, gain in enumerate(gains[[*order[used:]]].sum(axis=0).tolist()):
                if not members >> item & 1:
                    # Negative, so that the tuple's order prefers large sums, then the given order.
                    extended = round(negative_sum - gain, 9), (*order, item)
                    end = members | 1 << item, 0 if from_all else item
                    if end not in longer or extended < longer[end]:
                        longer[end] = extended
        if len(gains) > _EXACT:
            longer = dict(sorted(longer.items(), key=itemgetter(1))[:_BEAM])
        orders = longer
    return [*min(orders.values())[1]] if orders else []


def most_agreed(preferences: NDArray[np.float64]) -> list[int]:
    """Returns the order with the largest sum of preferences of earlier over later texts.

    A preference is the log odds that the row's text precedes the column's, shape (n, n), finite. If
    comparisons are independent, this is the likeliest order. The result is exact for up to 12
    texts. For more, it is the order by sums (Borda), improved by moving single texts as long as the
    sum grows. Ties keep the given order.
    """
    import numpy as np

    # Unlike Borda's order, it is the likeliest if comparisons are independent (decision 23).
    # Differences: only the two directions of a pair against each other change the best order.
    gains = preferences - preferences.T
    np.fill_diagonal(gains, 0.0)
    return best_order(gains, from_all=True) if len(gains) <= _EXACT else _improved(gains)


def _improved(gains: NDArray[np.float64]) -> list[int]:
    """Moves one item after the other to its best position, until the sum no longer grows."""
    import numpy as np

    # Rounded, so that equal sums keep the given order despite rounding errors.
    order: list[int] = np.argsort(-gains.sum(axis=1).round(9), kind="stable").tolist()
    has_moved = True
    while has_moved:
        has_moved = False
        for item in range(len(order)):
            position = order.index(item)
            remaining = order[:position] + order[position + 1 :]
            # Change of the sum at each position, relative to the first position.
            from_first = np.cumsum([0.0, *(-gains[item, remaining])])
            target = int(from_first.argmax())
            if from_first[target] > from_first[position] + _EPSILON:
                order, has_moved = [*remaining[:target], item, *remaining[target:]], True
    return order
