"""A tree of summaries: of chunks that are about the same, of those summaries, and so on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from annotated_types import Ge

from leporello.core.passages import reading_text
from leporello.core.protocols import ANSWER, Count, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment
from leporello.enrichers.clusters import clusters
from leporello.enrichers.summarising import INSTRUCTION, in_order, summaries


@dataclass(frozen=True)
class SummaryTree:
    """Summarises clusters of chunks, clusters of these summaries, and so on: RAPTOR.

    As Sarthi et al. describe (ICLR 2024), with latent semantic vectors of TF-IDF for embeddings, so
    that no model is needed. Clusters are soft: a chunk may be in several. All levels are searched
    together (RAPTOR's collapsed tree), or from the top down by the retriever `TreeSearch`.

    Attributes:
        role: Role of the reader that summarises.
        width: Number of chunks or summaries of a cluster at most; fewer where they do not fit.
        levels: Number of levels of summaries at most.
        roots: Number of summaries from which on there is no further level.
        instruction: Instruction for summaries.
        seed: Seed of the clusters.
    """

    role: Role = ANSWER
    width: Annotated[int, Ge(2)] = 10
    levels: Positive = 5
    roots: Positive = 5
    instruction: str = INSTRUCTION
    seed: Count = 0

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:  # noqa: ARG002
        """Yields a round of reads a level; returns the chunks and all summaries."""
        level = in_order(chunks)
        made: list[Chunk] = [*level]
        for _ in range(self.levels):
            if len(level) <= self.roots:
                break
            found = clusters([reading_text(node) for node in level], self.width, self.seed)
            groups = [numbers for numbers in found if len(numbers) > 1]
            alone = set(range(len(level))).difference(*groups)
            summed = yield from summaries(
                [[level[n] for n in numbers] for numbers in groups], self.instruction
            )
            made += summed
            if not summed or len(summed) + len(alone) >= len(level):
                break
            level = in_order([*summed, *(level[n] for n in alone)])
        return made
