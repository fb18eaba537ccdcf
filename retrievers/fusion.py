"""Reciprocal rank fusion: several retrievers vote by rank."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leporello.core.calls.contracts import sees_gold
from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Positive, Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.index.ranking import in_order


@dataclass(frozen=True)
class Fusion:
    """Adds 1 / (constant + rank) over retrievers (Cormack, Clarke and Buettcher, SIGIR 2009).

    Only ranks count, so that cosines, BM25 scores and logits need no common scale. A chunk that a
    retriever did not return gets nothing from it: let the retrievers return more than k.

    Attributes:
        retrievers: Retrievers that vote; each may itself contain others.
        k: Number of chunks a question gets.
        constant: Constant of the ranks: the larger, the less the first ranks outweigh the later
            ones.
    """

    retrievers: tuple[Retriever, ...]
    k: Positive = 10
    constant: Positive = 60

    def __post_init__(self) -> None:
        if not self.retrievers:
            raise ValueError("Fusion needs at least one retriever in `retrievers`")

    @property
    def sees_gold(self) -> bool:
        """Whether any of the retrievers does."""
        return any(map(sees_gold, self.retrievers))

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest sums for each example."""
        rankings = [retrieve(retriever, examples, chunks) for retriever in self.retrievers]
        return [self._fuse(votes) for votes in zip(*rankings, strict=True)]

    def _fuse(self, rankings: Iterable[Sequence[Hit]]) -> list[Hit]:
        shares: defaultdict[Chunk, list[float]] = defaultdict(list)
        for hits in rankings:
            ranked = dict.fromkeys(
                hit.chunk for hit in hits
            )  # a chunk votes once, at its best rank
            for rank, chunk in enumerate(ranked, start=1):
                shares[chunk].append(1 / (self.constant + rank))
        # fsum: equal votes give equal sums, whichever retriever cast them.
        return in_order(Hit(chunk, math.fsum(votes)) for chunk, votes in shares.items())[: self.k]
