"""Terms of Latin texts numbered without making them strings: eight bytes are one number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from leporello.text.tokens import BYTES, folded_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD = 8  # bytes of a number
_BLANK = 32


def number_bytes(
    texts: Sequence[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[str, int]] | None:
    """Returns the numbers of all terms of texts, as they first appear.

    The numbers in the texts' order, how many each text has, and the terms. None where a character
    of a text is more than a byte.
    """
    import numpy as np

    parts = [folded_bytes(text) for text in texts]
    whole = [part for part in parts if part is not None]
    if not whole or len(whole) < len(parts):
        return None
    data = b" ".join([b"", *whole, b" " * _WORD])
    codes = np.frombuffer(data, np.uint8)
    ink = codes != _BLANK
    starts, ends = (np.flatnonzero(ink[1:] != ink[:-1]) + 1).reshape(-1, 2).T
    keys = _keys(data, starts, ends)
    order = keys.argsort()
    new = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]]))
    first = np.minimum.reduceat(order, new) if new.size else new
    rank = np.empty_like(first)
    rank[first.argsort()] = np.arange(len(first))
    numbers = np.empty_like(order)
    numbers[order] = np.repeat(rank, np.diff(new, append=len(order)))
    first.sort()
    words = b" ".join(_slices(data, starts[first], ends[first])).decode(BYTES).split()
    ids = dict(zip(words, range(len(words)), strict=True))
    until = np.cumsum([len(part) + 1 for part in whole])
    counts = np.diff(starts.searchsorted(until, "right"), prepend=0)
    return numbers, counts, ids


def _keys(data: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> NDArray[np.uint64]:
    """Returns a number for each term, the same for the same: its bytes, or that of a long one."""
    import numpy as np

    keys = np.ndarray(len(data) - _WORD + 1, "<u8", data, strides=(1,))[starts]  # from any byte
    lengths = ends - starts
    masks = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], dtype=np.uint64)
    keys &= masks[np.minimum(lengths, _WORD)]
    long = np.flatnonzero(lengths > _WORD)
    words = _slices(data, starts[long], ends[long])
    known = {word: number for number, word in enumerate(dict.fromkeys(words), 1)}
    # Their lowest byte is zero, which no term has in it.
    keys[long] = np.fromiter(map(known.__getitem__, words), np.uint64, len(words)) << np.uint64(8)
    return keys


def _slices(data: bytes, starts: NDArray[np.intp], ends: NDArray[np.intp]) -> list[bytes]:
    return [data[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
