"""A reader reads each hit of another retriever alone, and what it is surest of comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import read, retrieve
from leporello.core.protocols import Positive, Reader, Retriever
from leporello.core.records import Chunk, Example, Hit, Read
from leporello.retrievers.index.postings import in_order


@dataclass(frozen=True)
class RerankByReader:
    """Orders the hits of another retriever by a reader's scores, and keeps the best.

    The reader must be one whose scores compare over passages: `Embedded`, whose score is about the
    log odds that the passage answers, or `Extractive`.

    Attributes:
        retriever: Retriever whose hits are read; let it return more than k.
        reader: Reader that reads the question with one hit at a time.
        k: Number of chunks a question gets.
    """

    retriever: Retriever
    reader: Reader
    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k best hits of each example; scores are the reader's.

        Raises:
            ValueError: The reader gives no score.
        """
        candidates = retrieve(self.retriever, examples, chunks)
        asked = [
            Read((hit.chunk,), example.question, example.instruction, example.choices)
            for example, hits in zip(examples, candidates, strict=True)
            for hit in hits
        ]
        outputs = iter(read(self.reader, asked) if asked else ())
        found = []
        for hits in candidates:
            scored = [Hit(hit.chunk, _score(next(outputs).score)) for hit in hits]
            found.append(in_order(scored)[: self.k])
        return found


def _score(score: float | None) -> float:
    if score is None:
        raise ValueError("the reader gives no scores, by which RerankByReader orders")
    return score
