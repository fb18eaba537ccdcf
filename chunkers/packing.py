"""What the chunkers share: stretches of a document that stay whole, and their packing.

The units of a document are neighbours; the white space between them belongs to none, and
everything else belongs to exactly one. Chunks are runs of units, so a chunk neither begins nor
ends with white space, and nothing but white space lies outside the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leporello import Document, Span
from leporello.text.tokens import next_nonblank, tokenizer, white_mask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Stretches of a text that chunks are made of: arrays of one length, ascending.

    Attributes:
        text: Text of the document.
        starts: Indices of the units' first characters; none is white space.
        before: Number of the document's tokens that start before each unit.
        through: Number of tokens that start before its end, the white space behind it left out.
    """

    text: str
    starts: NDArray[np.int64]
    before: NDArray[np.int64]
    through: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def run(self, first: int, end: int) -> Span:
        """Returns the span of the units `first` up to, not including, `end`."""
        start = int(self.starts[first])
        limit = int(self.starts[end]) if end < len(self) else len(self.text)
        return Span(start, start + len(self.text[start:limit].rstrip()))

    def end_of_run(self, first: int, size: int) -> int:
        """Returns one past the last unit that `size` tokens reach, but takes one unit at least."""
        return max(first + 1, int(self.through.searchsorted(self.before[first] + size, "right")))

    def start_of_run(self, last: int, size: int) -> int:
        """Returns the first unit from which `size` tokens reach through `last`, or `last`."""
        return min(last, int(self.before.searchsorted(self.through[last] - size)))

    def back(self, unit: int, overlap: int) -> int:
        """Returns the first unit that is at most `overlap` tokens before this one."""
        return int(self.before.searchsorted(self.before[unit] - overlap))


def units(document: Document, model: str, boundaries: ArrayLike) -> Units:
    """Returns the stretches between boundaries, blank ones left out.

    Args:
        document: Document that is divided.
        model: Tokenizer that counts, as a pipeline names it.
        boundaries: Ascending character offsets; the document's ends need not be among them.
    """
    import numpy as np

    text = document.text
    blank: NDArray[np.bool_] = document.memo(white_mask, lambda: white_mask(text))
    edges = np.concatenate([[0], np.asarray(boundaries, dtype=np.int64), [len(text)]])
    edges = next_nonblank(blank, edges)
    edges = edges[np.append(True, edges[1:] > edges[:-1])]
    tokens = np.ascontiguousarray(document.tokens(tokenizer(model))[:, 0])
    before = np.searchsorted(tokens, edges)
    # A token of white space alone is in a unit only if something comes after it there.
    needed = next_nonblank(blank, tokens)
    through = before if needed is tokens else np.searchsorted(needed, edges)
    return Units(text, edges[:-1], before[:-1], through[1:])


def token_units(document: Document, model: str) -> Units:
    """Returns the smallest stretches that tokens leave: tokens that share a character stay one.

    Characters in no token go with the token before them, or with the first one.
    """
    import numpy as np

    starts, ends = document.tokens(tokenizer(model)).T
    reached = np.maximum.accumulate(ends)
    return units(document, model, starts[1:][starts[1:] >= reached[:-1]])


def _refined(coarse: Units, fine: Units, size: int) -> NDArray[np.int64]:
    """Returns boundaries at every coarse unit, and at the fine ones inside those over `size`."""
    import numpy as np

    too_long = coarse.through - coarse.before > size
    around = np.searchsorted(coarse.starts, fine.starts, side="right") - 1
    both = np.concatenate([coarse.starts, fine.starts[too_long[around]]])
    both.sort(kind="stable")  # merges the two: np.union1d hashes, and misses the cache on megabytes
    distinct: NDArray[np.int64] = both[np.append(both[1:] > both[:-1], True)[: len(both)]]
    return distinct


def divided(document: Document, model: str, pieces: Units, size: int, *finer: ArrayLike) -> Units:
    """Returns units, those of more than `size` tokens divided: at finer boundaries, then at tokens.

    The finer boundaries are those of each kind of unit, coarse kinds first.
    """
    for fine in (*(units(document, model, b) for b in finer), token_units(document, model)):
        pieces = units(document, model, _refined(pieces, fine, size))
    return pieces


def spans(pieces: Units) -> Iterator[Span]:
    """Yields one span a unit."""
    return (pieces.run(i, i + 1) for i in range(len(pieces)))


def pack(
    pieces: Units, size: int, back: Callable[[int], int] = lambda unit: unit
) -> Iterator[Span]:
    """Yields runs of as many whole units as have no more than `size` tokens.

    A unit that has more by itself makes a run by itself.

    Args:
        pieces: Pieces that are packed, in order.
        size: Number of tokens a run at most.
        back: A function, for runs that overlap, from a unit to the one at which the run begins that
            goes on with it. It begins later if `size` tokens would not reach that far.
    """
    end = 0
    while end < len(pieces):
        start = max(back(end), pieces.start_of_run(end, size))
        end = pieces.end_of_run(start, size)
        yield pieces.run(start, end)


def check_overlap(overlap: int, size: int) -> None:
    """Raises the `ValueError` of a chunker whose chunks would not advance."""
    if overlap >= size:
        raise ValueError(f"overlap ({overlap}) must be less than size ({size})")


def packed_within(pieces: Units, stretches: Iterable[tuple[int, int]], size: int) -> Iterator[Span]:
    """Yields runs of pieces with no more than `size` tokens, each within one (first, end)."""
    for first, last in stretches:
        end = first
        while end < last:
            start, end = end, min(pieces.end_of_run(end, size), last)
            yield pieces.run(start, end)
