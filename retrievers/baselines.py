"""Baseline retrievers that ignore the text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Hit


class _QuestionIndependent:
    """Base of retrievers that return the same chunks for every question, with a score of 0."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the same chunks for each question, in document order."""
        return [[Hit(chunk, 0.0) for chunk in self._selected(chunks)] for _ in questions]

    def _selected(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        return chunks


@dataclass(frozen=True)
class All(_QuestionIndependent):
    """Returns every chunk in document order; all scores are 0."""


@dataclass(frozen=True)
class First(_QuestionIndependent):
    """Returns the first chunks of the document; all scores are 0.

    Attributes:
        k: Number of chunks.
    """

    k: Positive = 10

    def _selected(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        return chunks[: self.k]


@dataclass(frozen=True)
class Ends(_QuestionIndependent):
    """Returns equally many chunks of the document's beginning and end; all scores are 0.

    Attributes:
        k: Number of chunks; if it is odd, the beginning has one more.
    """

    k: Positive = 10

    def _selected(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        # In a short document the two ends would overlap, and chunks would be hits twice.
        last = max(len(chunks) - self.k // 2, (self.k + 1) // 2)
        return [*chunks[: (self.k + 1) // 2], *chunks[last:]]


@dataclass(frozen=True)
class Evenly(_QuestionIndependent):
    """Returns the middle chunk of each of k equal parts of the document; all scores are 0.

    Attributes:
        k: Number of chunks.
    """

    k: Positive = 10

    def _selected(self, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
        count = min(self.k, len(chunks))
        return [chunks[(2 * part + 1) * len(chunks) // (2 * count)] for part in range(count)]


@dataclass(frozen=True)
class Random:
    """Returns random chunks, which depend only on the seed, the document and the question.

    Attributes:
        k: Number of chunks.
        seed: Seed of the draw.
    """

    k: Positive = 10
    seed: int = 0

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns k chunks for each question; their scores are the random numbers, 0 to 1."""
        return [self._draw(question, chunks) for question in questions]

    def _draw(self, question: str, chunks: Sequence[Chunk]) -> list[Hit]:
        if not chunks:
            return []
        # Text seeds are hashed by SHA-512, so every process draws the same chunks.
        generator = random.Random(repr((self.seed, chunks[0].document.id, question)))
        hits = [Hit(chunk, generator.random()) for chunk in chunks]
        return sorted(hits, key=lambda hit: -hit.score)[: self.k]
