"""Searches down a tree of passages, level by level."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from math import inf

from leporello.core.calls.stage_calls import retrieve
from leporello.core.passages import Passage, identity
from leporello.core.protocols import Positive, Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.index.postings import in_order


@dataclass(frozen=True)
class TreeSearch:
    """Searches from the roots of a tree to its chunks, through the best passages of each level.

    RAPTOR's tree traversal (Sarthi et al., ICLR 2024), for trees of `SummaryTree` or `SectionTree`;
    without a tree, it returns the retriever's hits. Hits are chunks, and passages without sources
    among the searched passages. Passages that the retriever does not return are searched last, and
    are no hits.

    Attributes:
        retriever: Retriever that scores passages of all levels; it should return all.
        k: Number of hits per question.
        beam: Number of passages of a level whose sources are searched.
    """

    retriever: Retriever
    k: Positive = 10
    beam: Positive = 5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the best chunks below the best passages; scores are the retriever's."""
        passages = (chunk for chunk in chunks if isinstance(chunk, Passage))
        below = {id(source) for passage in passages for source in passage.sources}
        searched = {id(chunk) for chunk in chunks}
        roots = [chunk for chunk in chunks if id(chunk) not in below]
        rankings = retrieve(self.retriever, examples, chunks)
        return [self._down(roots, hits, searched) for hits in rankings]

    def _down(
        self, level: Sequence[Chunk], hits: Sequence[Hit], searched: Collection[int]
    ) -> list[Hit]:
        # Of several passages with the same text, the best counts.
        scores = {identity(hit.chunk): hit.score for hit in reversed(hits)}
        leaves: dict[object, Hit] = {}
        while level:
            unique = {id(chunk): chunk for chunk in level}.values()
            # A summary may lack the question's words, although a passage below has them.
            ranked = in_order(Hit(chunk, scores.get(identity(chunk), -inf)) for chunk in unique)
            below = [_below(hit.chunk, searched) for hit in ranked]
            for hit, sources in zip(ranked, below, strict=True):
                if not sources and hit.score > -inf:
                    leaves.setdefault(identity(hit.chunk), hit)
            level = [*chain.from_iterable([*filter(None, below)][: self.beam])]
        return in_order(leaves.values())[: self.k]


def _below(chunk: Chunk, searched: Collection[int]) -> list[Chunk]:
    sources = chunk.sources if isinstance(chunk, Passage) else ()
    return [source for source in sources if id(source) in searched]
