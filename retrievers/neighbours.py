"""Widens hits by the chunks around them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Count, Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.index.postings import in_order


@dataclass(frozen=True)
class Neighbours:
    """Widens each hit of another retriever by the chunks around it, and joins adjacent hits.

    Hits are adjacent if there is only white space between them. A joined hit has the best score of
    its hits.

    Attributes:
        retriever: Retriever whose hits are widened.
        before: Number of chunks to add before each hit.
        after: Number of chunks to add after each hit.
    """

    retriever: Retriever
    before: Count = 1
    after: Count = 1

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the widened hits of each example, best first."""
        starts = sorted(chunk.start for chunk in chunks)
        ends = sorted(chunk.end for chunk in chunks)
        return [
            in_order(_join(self._widen(hit, starts, ends) for hit in hits))
            for hits in retrieve(self.retriever, examples, chunks)
        ]

    def _widen(self, hit: Hit, starts: Sequence[int], ends: Sequence[int]) -> Hit:
        chunk = hit.chunk
        first = bisect_left(starts, chunk.start)
        last = bisect_right(ends, chunk.end)
        start = min([chunk.start, *starts[max(first - self.before, 0) : first]])
        end = max([chunk.end, *ends[last : last + self.after]])
        return Hit(chunk.document.chunk(start, end), hit.score)


def _join(hits: Iterable[Hit]) -> list[Hit]:
    """Joins hits that overlap or are adjacent; returns them in document order."""
    joined: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: (hit.chunk.start, hit.chunk.end)):
        if joined and _are_adjacent(joined[-1].chunk, hit.chunk):
            joined.append(_union(joined.pop(), hit))
        else:
            joined.append(hit)
    return joined


def _are_adjacent(left: Chunk, right: Chunk) -> bool:
    # Chunks begin and end without white space, so only that is between neighbours.
    return not left.document.text[left.end : right.start].strip()


def _union(left: Hit, right: Hit) -> Hit:
    end = max(left.chunk.end, right.chunk.end)
    return Hit(left.chunk.document.chunk(left.chunk.start, end), max(left.score, right.score))
