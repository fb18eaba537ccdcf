"""Stages without parameters and questions on few words, with which the engine is tested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from leporello.core.records import Chunk, Combination, Document, Example, Hit, Read, Span


@dataclass(frozen=True)
class Words:
    """One chunk per word."""

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the words between single spaces."""
        start = 0
        for word in document.text.split(" "):
            if word:
                yield Span(start, start + len(word))
            start += len(word) + 1


@dataclass(frozen=True)
class All:
    """All chunks."""

    def retrieve(self, questions: Sequence[str], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns each chunk with the same score."""
        return [[Hit(chunk, 1.0) for chunk in chunks] for _ in questions]


@dataclass(frozen=True)
class TwoRounds:
    """Reads every hit, then all the answers at once."""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Returns the second round's answer."""
        first = yield [Read((hit.chunk,), example.question) for hit in hits]
        [second] = yield [Read(tuple(output.text for output in first), example.question)]
        return str(second.text)


def joined(read: Read) -> str:
    """Returns the texts of a read's passages."""
    return "+".join(p if isinstance(p, str) else p.text for p in read.passages)


def questions(count: int, documents: int = 7) -> list[Example]:
    """Returns questions on some documents of one to four words."""
    texts = [" ".join(f"w{d}x{n}" for n in range(1 + d % 4)) for d in range(documents)]
    made = [Document(f"d{d}", text) for d, text in enumerate(texts)]
    chosen = sorted(range(count), key=lambda n: n % documents)
    return [Example(f"e{n}", made[n % documents], question="w", references=("w",)) for n in chosen]
