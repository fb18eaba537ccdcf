"""First the files of a collection, then passages in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.members import member_at
from leporello.core.protocols import Count, Positive, Retriever
from leporello.core.records import Chunk, Example, Hit


@dataclass(frozen=True)
class TwoSteps:
    """Chooses files by their best passage, then searches in these alone.

    So a retriever that is slow, or learns from all chunks, works on any number of files. A document
    that is no collection is one file.

    Attributes:
        first: Retriever whose hits choose files; let it return many.
        then: Retriever that finds passages in the files that were chosen; without it, hits of the
            first are kept.
        files: Number of files a question gets.
        each: Number of passages a file at most; 0 is any number.
    """

    first: Retriever
    then: Retriever | None = None
    files: Positive = 10
    each: Count = 0

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example in the files that were chosen for it, best first."""
        found = retrieve(self.first, examples, chunks)
        return [self._in_files(*pair, chunks) for pair in zip(examples, found, strict=True)]

    def _in_files(self, example: Example, hits: list[Hit], chunks: Sequence[Chunk]) -> list[Hit]:
        ranked = dict.fromkeys(_file(hit.chunk) for hit in hits)
        chosen = {*[*ranked][: self.files]}
        if self.then:
            inside = tuple(chunk for chunk in chunks if _file(chunk) in chosen)
            [hits] = retrieve(self.then, [example], inside)
        kept: Counter[int] = Counter()
        best = []
        for hit in hits:
            number = _file(hit.chunk)
            kept[number] += 1
            if number in chosen and kept[number] <= (self.each or len(hits)):
                best.append(hit)
        return best


def _file(chunk: Chunk) -> int:
    return member_at(chunk.document, chunk.start)
