"""Units of a document that chunkers do not divide, and their packing into chunks.

Every character of a document belongs to exactly one unit, except white space between units. So
chunks, which are runs of units, leave out only white space, and never begin or end with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from leporello import Document, Span
from leporello.text.tokens import next_nonblank, tokenizer, white_mask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """Spans of a text that chunks consist of, as ascending arrays of equal length."""

    text: str  # text of the document
    starts: NDArray[np.int64]  # offsets of the units' first characters, which are never white space
    before: NDArray[np.int64]  # number of the document's tokens that start before each unit
    # Number of tokens that start before the end of each unit, without the white space after it
    through: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts)

    def run(self, first: int, end: int) -> Span:
        """Returns the span of the units from `first` to before `end`."""
        start = int(self.starts[first])
        limit = int(self.starts[end]) if end < len(self) else len(self.text)
        return Span(start, start + len(self.text[start:limit].rstrip()))

    def end_of_run(self, first: int, size: int) -> int:
        """Returns the end of a run from `first` of at most `size` tokens, or of one unit."""
        return max(first + 1, int(self.through.searchsorted(self.before[first] + size, "right")))

    def start_of_run(self, last: int, size: int) -> int:
        """Returns the start of a run through `last` of at most `size` tokens, or `last`."""
        return min(last, int(self.before.searchsorted(self.through[last] - size)))

    def back(self, unit: int, overlap: int) -> int:
        """Returns the first unit that begins at most `overlap` tokens before `unit`."""
        # A unit whose token starts in the white space before it counts no token of its own.
        return int(self.before.searchsorted(self.before[unit] - overlap)) if overlap else unit


def units(document: Document, model: str, boundaries: ArrayLike) -> Units:
    """Returns the spans between ascending character offsets, without blank ones."""
    import numpy as np

    text = document.text
    blank: NDArray[np.bool_] = document.memo(white_mask, lambda: white_mask(text))
    edges = np.concatenate([[0], np.asarray(boundaries, dtype=np.int64), [len(text)]])
    edges = next_nonblank(blank, edges)
    edges = edges[np.append(True, edges[1:] > edges[:-1])]
    # A column of a matrix is strided, and every `searchsorted` would copy it.
    tokens = np.ascontiguousarray(document.tokens(tokenizer(model))[:, 0])
    before = np.searchsorted(tokens, edges)
    # A token of white space counts for a unit only if more of that unit follows the token.
    needed = next_nonblank(blank, tokens)
    through = before if needed is tokens else np.searchsorted(needed, edges)
    return Units(text, edges[:-1], before[:-1], through[1:])


def token_units(document: Document, model: str) -> Units:
    """Returns one unit per token, or per group of tokens that share a character.

    A character without a token belongs to the unit before it, or to the first one.
    """
    import numpy as np

    starts, ends = document.tokens(tokenizer(model)).T
    reached = np.maximum.accumulate(ends)
    return units(document, model, starts[1:][starts[1:] >= reached[:-1]])


def _refined(coarse: Units, fine: Units, size: int) -> NDArray[np.int64]:
    """Returns the starts of all coarse units, and of the fine ones inside those over `size`."""
    import numpy as np

    too_long = coarse.through - coarse.before > size
    around = np.searchsorted(coarse.starts, fine.starts, side="right") - 1
    both = np.concatenate([coarse.starts, fine.starts[too_long[around]]])
    both.sort(kind="stable")  # merges the two: np.union1d hashes, and misses the cache on megabytes
    distinct: NDArray[np.int64] = both[np.append(both[1:] > both[:-1], True)[: len(both)]]
    return distinct


def divided(document: Document, model: str, pieces: Units, size: int, *finer: ArrayLike) -> Units:
    """Returns units; those of more than `size` tokens are divided, first at coarse boundaries."""
    for fine in (*(units(document, model, b) for b in finer), token_units(document, model)):
        pieces = units(document, model, _refined(pieces, fine, size))
    return pieces


def spans(pieces: Units) -> Iterator[Span]:
    """Yields one span per unit."""
    return (pieces.run(i, i + 1) for i in range(len(pieces)))


def pack(
    pieces: Units, size: int, fences: Sequence[int] = (0,), overlap: int = 0
) -> Iterator[Span]:
    """Yields the longest runs of units with at most `size` tokens; a longer unit is a run.

    No run crosses a fence, the number of a unit. A run repeats the last `overlap` units of the run
    before it, or fewer if it would exceed `size` tokens.
    """
    for first, last in pairwise((*fences, len(pieces))):
        end = first
        while end < last:
            # The overlap yields to the size, otherwise a long unit would make a chunk too long.
            start = max(end - overlap, first, pieces.start_of_run(end, size))
            end = min(pieces.end_of_run(start, size), last)
            yield pieces.run(start, end)


def check_overlap(overlap: int, size: int) -> None:
    """Raises `ValueError` if the overlap is as long as a chunk, so that chunks would not end."""
    if overlap >= size:
        raise ValueError(f"overlap ({overlap}) must be less than size ({size})")
