"""Reciprocal rank fusion: several retrievers vote by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.ranks import CONSTANT, fused
from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Positive, Retriever
from leporello.core.records import Chunk, Example, Hit


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
    constant: Positive = CONSTANT

    def __post_init__(self) -> None:
        if not self.retrievers:
            raise ValueError("Fusion needs at least one retriever in `retrievers`")

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest sums for each example."""
        rankings = [retrieve(retriever, examples, chunks) for retriever in self.retrievers]
        return [fused(votes, self.constant)[: self.k] for votes in zip(*rankings, strict=True)]
