"""Reranks the hits of another retriever by a reader's scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import read, retrieve
from leporello.core.protocols import Positive, Reader, Retriever
from leporello.core.records import Chunk, Example, Hit, Read
from leporello.retrievers.index.postings import in_order


@dataclass(frozen=True)
class RerankByReader:
    """Sorts the hits of another retriever by a reader's scores, and returns the best.

    The reader's scores must be comparable between passages: `Embedded`, whose score approximates
    the log odds that the passage has the answer, or `Extractive`.

    Attributes:
        retriever: Retriever whose hits are read; it should return more than k.
        reader: Reader that reads the question with one hit at a time.
        k: Number of hits per question.
    """

    retriever: Retriever
    reader: Reader
    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k best hits of each example; scores are the reader's.

        Raises:
            ValueError: The reader returns no score.
        """
        candidates = retrieve(self.retriever, examples, chunks)
        reads = [
            Read((hit.chunk,), example.question, example.instruction, example.choices)
            for example, hits in zip(examples, candidates, strict=True)
            for hit in hits
        ]
        outputs = iter(read(self.reader, reads) if reads else ())
        rankings = []
        for hits in candidates:
            scored = [Hit(hit.chunk, _score(next(outputs).score)) for hit in hits]
            rankings.append(in_order(scored)[: self.k])
        return rankings


def _score(score: float | None) -> float:
    if score is None:
        raise ValueError("RerankByReader needs a reader that returns scores, such as Embedded")
    return score
