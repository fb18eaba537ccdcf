"""Some examples' hits from one retriever, the others' from another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Retriever, Share
from leporello.core.records import Chunk, Example, Hit


@dataclass(frozen=True)
class Mixed:
    """Gives each example the hits of one of two retrievers, drawn by lot.

    So a reader can be trained on gold evidence for some examples and on what retrieval finds for
    the others, and a sweep over `share` measures what that does. What is drawn depends on the seed
    and the example's id alone, and with a larger share nothing goes back from the first retriever
    to the second. Both in one list is what `Fusion` gives.

    Attributes:
        retrievers: Two retrievers, the first and the second; each may itself contain others.
        share: Share of the examples that get the first one's hits, on average, 0 to 1.
        seed: Seed of the draw: another one draws other examples.
    """

    retrievers: tuple[Retriever, ...]
    share: Share = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.retrievers) != 2:  # noqa: PLR2004 -- as the class says
            raise ValueError(f"Mixed needs two `retrievers`, got {len(self.retrievers)}")

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example; a retriever is asked its own examples together."""
        drawn = [self._draw(example.id) for example in examples]
        hits_by_index: dict[int, list[Hit]] = {}
        for which, retriever in enumerate(self.retrievers):
            indices = [index for index, number in enumerate(drawn) if number == which]
            hits = retrieve(retriever, [examples[index] for index in indices], chunks)
            hits_by_index |= dict(zip(indices, hits, strict=True))
        return [hits_by_index[index] for index in range(len(examples))]

    def _draw(self, example: str) -> int:
        # A seed that is text is hashed by SHA-512: the same lots in every process.
        return int(random.Random(repr((self.seed, example))).random() >= self.share)
