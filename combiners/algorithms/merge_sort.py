"""Merge sort by comparisons that somebody else makes, many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

# Yields rounds of pairs, is sent for each whether the first one comes first, returns an order.
Comparisons = Generator[Sequence[tuple[int, int]], Sequence[bool], list[int]]


@dataclass(frozen=True, slots=True)
class _Merge:
    left: deque[int]
    right: deque[int]
    merged: list[int] = field(default_factory=list)

    def take(self, left_first: bool) -> None:
        self.merged.append((self.left if left_first else self.right).popleft())

    def whole(self) -> list[int]:
        return [*self.merged, *self.left, *self.right]


def merge_sort(count: int) -> Comparisons:
    """Sorts 0 to `count` - 1 by no more than n log2 n comparisons, whatever they say.

    All merges of a level go side by side, so that a round has a comparison for each of them. In
    every pair the first is one that stands earlier now.
    """
    runs = [[item] for item in range(count)]
    while len(runs) > 1:
        runs = yield from _level(runs)
    return runs[0] if runs else []


def _level(
    runs: Sequence[list[int]],
) -> Generator[Sequence[tuple[int, int]], Sequence[bool], list[list[int]]]:
    pairs = zip(runs[::2], [*runs[1::2], []], strict=False)
    merges = [_Merge(deque(left), deque(right)) for left, right in pairs]
    while open_ := [merge for merge in merges if merge.left and merge.right]:
        answers = yield [(merge.left[0], merge.right[0]) for merge in open_]
        for merge, left_first in zip(open_, answers, strict=True):
            merge.take(left_first)
    return [merge.whole() for merge in merges]
