"""Retrievers that look at no text: what the others are measured against."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Hit


class _Unasked:
    """Base of those that give every question the same chunks; all score 0."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the same chunks for each question, in document order."""
        return [[Hit(chunk, 0.0) for chunk in self._taken(chunks)] for _ in questions]

    def _taken(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        return chunks


@dataclass(frozen=True)
class All(_Unasked):
    """Every chunk, in document order; all score 0, since nothing is known of them."""


@dataclass(frozen=True)
class First(_Unasked):
    """The document's beginning; all chunks score 0, since nothing is known of them.

    Attributes:
        k: Number of chunks.
    """

    k: Positive = 10

    def _taken(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        return chunks[: self.k]


@dataclass(frozen=True)
class Ends(_Unasked):
    """The document's beginning and its end, as many chunks of either; all score 0.

    Attributes:
        k: Number of chunks; of an odd one the beginning has one more.
    """

    k: Positive = 10

    def _taken(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        last = max(len(chunks) - self.k // 2, (self.k + 1) // 2)
        return [*chunks[: (self.k + 1) // 2], *chunks[last:]]


@dataclass(frozen=True)
class Evenly(_Unasked):
    """The middle one of each of k equal parts of the document; all score 0.

    Attributes:
        k: Number of chunks.
    """

    k: Positive = 10

    def _taken(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        count = min(self.k, len(chunks))
        return [chunks[(2 * part + 1) * len(chunks) // (2 * count)] for part in range(count)]


@dataclass(frozen=True)
class Random:
    """Chunks drawn at random, the same for the same seed, document and question.

    What is drawn for a question depends neither on the other questions nor on their order.

    Attributes:
        k: Number of chunks.
        seed: Seed of the draw: another one draws other chunks.
    """

    k: Positive = 10
    seed: int = 0

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns k chunks for each question; a chunk's score is its lot, from 0 to 1."""
        return [self._draw(question, chunks) for question in questions]

    def _draw(self, question: str, chunks: Sequence[Chunk]) -> list[Hit]:
        if not chunks:
            return []
        # A seed that is text is hashed by SHA-512: the same draws in every process.
        generator = random.Random(repr((self.seed, chunks[0].document.id, question)))
        hits = [Hit(chunk, generator.random()) for chunk in chunks]
        return sorted(hits, key=lambda hit: -hit.score)[: self.k]
