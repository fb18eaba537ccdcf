"""Down a tree of passages, level by level."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from leporello.core.calls.stage_calls import retrieve
from leporello.core.passages import Passage, identity
from leporello.core.protocols import Positive, Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.retrievers.index.postings import in_order


@dataclass(frozen=True)
class TreeSearch:
    """Goes from the roots of a tree to its chunks, by the best passages of each level.

    RAPTOR's tree traversal (Sarthi et al., ICLR 2024), for what `SummaryTree` or `SectionTree`
    make; without a tree, the retriever's own hits. What is found are chunks, and passages of which
    no source is searched.

    Attributes:
        retriever: Retriever that scores passages of all levels; let it return all.
        k: Number of chunks a question gets.
        beam: Number of passages of a level from which it goes on.
    """

    retriever: Retriever
    k: Positive = 10
    beam: Positive = 5

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the best chunks below the best passages; scores are the retriever's."""
        below = {id(one) for chunk in chunks if isinstance(chunk, Passage) for one in chunk.sources}
        searched = {id(chunk) for chunk in chunks}
        roots = [chunk for chunk in chunks if id(chunk) not in below]
        found = retrieve(self.retriever, examples, chunks)
        return [self._down(roots, hits, searched) for hits in found]

    def _down(
        self, level: Sequence[Chunk], hits: Sequence[Hit], searched: Collection[int]
    ) -> list[Hit]:
        # Where the same is read of several passages, the best of them counts.
        scores = {identity(hit.chunk): hit.score for hit in reversed(hits)}
        leaves: dict[object, Hit] = {}
        while level:
            once = {id(one): one for one in level if identity(one) in scores}
            ranked = in_order(Hit(one, scores[identity(one)]) for one in once.values())
            below = [_below(hit.chunk, searched) for hit in ranked]
            for hit, sources in zip(ranked, below, strict=True):
                if not sources:
                    leaves.setdefault(identity(hit.chunk), hit)
            level = [*chain.from_iterable([*filter(None, below)][: self.beam])]
        return in_order(leaves.values())[: self.k]


def _below(chunk: Chunk, searched: Collection[int]) -> list[Chunk]:
    sources = chunk.sources if isinstance(chunk, Passage) else ()
    return [source for source in sources if id(source) in searched]
