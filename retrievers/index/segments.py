"""Postings of several files as one index, each file's kept apart.

Terms are known by 64 bits of a hash: so a file's are looked up, and those of all files counted,
without a dictionary in memory. That any two of a million terms share one has odds of 1 : 30 000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.core.records import Index
from leporello.retrievers.index.postings import TermCounts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEED = 20  # of the factors; what is kept on disk depends on them


@dataclass(frozen=True, eq=False)
class SegmentedPostings:
    """The postings of all files.

    Attributes:
        segments: Postings of each file, as `segment` makes them.
        firsts: Number of each file's first chunk among all chunks.
        lengths: Number of terms of each chunk, shape (chunks,).
        holding: Number of chunks that each term stands in, terms in no order, shape (terms,).
    """

    segments: tuple[Any, ...]
    firsts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    holding: NDArray[np.int64]

    @classmethod
    def of(cls, segments: Sequence[Index]) -> SegmentedPostings:
        """Returns segments as one."""
        import numpy as np

        made: Any = tuple(segments)
        sizes = [len(each["lengths"]) for each in made]
        hashes = np.concatenate([each["hashes"] for each in made])
        holding = np.concatenate([np.diff(each["starts"]) for each in made])
        order = hashes.argsort()
        new = np.flatnonzero(np.diff(hashes[order], prepend=~hashes[order[:1]]))
        return cls(
            made,
            np.cumsum([0, *sizes[:-1]]),
            np.concatenate([each["lengths"] for each in made]).astype(np.int64),
            np.add.reduceat(holding[order], new) if len(new) else holding,
        )

    def counts_of(self, terms: Sequence[str]) -> TermCounts:
        """Returns how often each term stands in each chunk of all files."""
        import numpy as np

        wanted, found = _hashes(terms), list[tuple[Any, Any, Any]]()
        for first, each in zip(self.firsts, self.segments, strict=True):
            at = np.searchsorted(each["hashes"], wanted)
            numbers = np.flatnonzero(at < len(each["hashes"]))
            numbers = numbers[each["hashes"][at[numbers]] == wanted[numbers]]
            starts = each["starts"][at[numbers]].astype(np.int64)
            sizes = each["starts"][at[numbers] + 1] - starts
            skipped = np.cumsum(sizes) - sizes
            entries = np.arange(sizes.sum()) + np.repeat(starts - skipped, sizes)
            texts = each["chunks"][entries] + first
            found.append((texts, np.repeat(numbers, sizes), each["counts"][entries]))
        texts, numbers, counts = map(np.concatenate, zip(*found, strict=True))
        order = numbers.argsort(kind="stable")  # by term; its chunks are in order already
        return TermCounts(texts[order], numbers[order], counts[order].astype(np.float64))


def segment(counts: TermCounts, ids: Iterable[str], chunks: int) -> Index:
    """Returns the postings of a file's chunks, terms in the order of their hashes.

    `chunks` and `counts` of term t stand at `starts[t]:starts[t + 1]`; all in as few bytes as hold
    them.

    Args:
        counts: Counts of the terms.
        ids: Terms in the order of their numbers.
        chunks: Number of chunks.
    """
    import numpy as np

    hashes = _hashes([*ids])
    order = hashes.argsort()
    starts = np.searchsorted(counts.terms, np.arange(len(hashes) + 1))
    sizes = np.diff(starts)[order]
    ends = np.cumsum(sizes)
    entries = np.arange(len(counts.texts)) + np.repeat(starts[order] - (ends - sizes), sizes)
    return {
        "hashes": hashes[order],
        "starts": _small(np.concatenate([[0], ends])),
        "chunks": _small(counts.texts[entries]),
        "counts": _small(counts.counts[entries]),
        "lengths": _small(np.bincount(counts.texts, counts.counts, minlength=chunks)),
    }


def _small(numbers: NDArray[Any]) -> NDArray[Any]:
    """Returns natural numbers in as few bytes as hold the largest."""
    import numpy as np

    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _hashes(terms: Sequence[str]) -> NDArray[np.uint64]:
    """Returns 64 bits of each term: its bytes times random factors, summed."""
    import numpy as np

    if not terms:
        return np.zeros(0, np.uint64)
    written = "\n".join([*terms, ""]).encode("utf-8", "surrogatepass")  # which no term has in it
    letters = np.frombuffer(written, np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    sizes = ends - starts + 1
    factors = np.random.PCG64(_SEED).random_raw(int(sizes.max())) | np.uint64(1)
    places = np.arange(len(letters)) - np.repeat(starts, sizes)
    hashes: NDArray[np.uint64] = np.add.reduceat(
        letters.astype(np.uint64) * factors[places], starts
    )
    return hashes
