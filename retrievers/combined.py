"""Retrievers that contain other retrievers: fusion, random choice, two steps, and by question."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.members import member_at
from leporello.core.notes import note
from leporello.core.passages import fused, spans_of
from leporello.core.protocols import Count, Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit
from leporello.text.english.questions import Wanted, is_statement, wanted


@dataclass(frozen=True)
class Fusion:
    """Adds 1 / (60 + rank) over retrievers (Cormack, Clarke and Buettcher, SIGIR 2009).

    Only ranks count, so that cosines, BM25 scores and logits need no common scale. A retriever adds
    nothing for chunks that it did not return, so the retrievers should return more than k hits.

    Attributes:
        retrievers: Retrievers to fuse, which may contain other retrievers.
        k: Number of hits per question.
    """

    retrievers: tuple[Retriever, ...]
    k: Positive = 10

    def __post_init__(self) -> None:
        if not self.retrievers:
            raise ValueError("Fusion needs at least one retriever in `retrievers`")

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest sums for each example."""
        rankings = [retrieve(retriever, examples, chunks) for retriever in self.retrievers]
        return [fused(votes)[: self.k] for votes in zip(*rankings, strict=True)]


@dataclass(frozen=True)
class Mixed:
    """Returns the hits of one of two retrievers, which is drawn at random for each example.

    This trains a reader on gold evidence for some examples and on real hits for the others, and a
    sweep over `share` measures the effect. The draw depends only on the seed and the example's id;
    a larger share only moves examples from the second retriever to the first. To merge the hits of
    both, use `Fusion`.

    Attributes:
        retrievers: Two retrievers, which may contain other retrievers.
        share: Expected share of the examples with hits of the first retriever, 0 to 1.
        seed: Seed of the draw.
    """

    retrievers: tuple[Retriever, ...]
    share: Share = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.retrievers) != 2:  # noqa: PLR2004 -- exactly two
            raise ValueError(f"Mixed needs two `retrievers`, got {len(self.retrievers)}")

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example; each retriever gets all its examples in one call."""
        numbers = [self._draw(example.id) for example in examples]
        hits = []
        for place, retriever in enumerate(self.retrievers):
            group = [e for e, number in zip(examples, numbers, strict=True) if number == place]
            hits.append(iter(retrieve(retriever, group, chunks)))
        return [next(hits[number]) for number in numbers]

    def _draw(self, example: str) -> int:
        # Text seeds are hashed by SHA-512, so every process draws the same numbers.
        # One number for each example, so that a larger share keeps those that it had (decision 25).
        return int(random.Random(repr((self.seed, example))).random() >= self.share)


@dataclass(frozen=True)
class TwoSteps:
    """Chooses files by their best passages, then searches only in these files.

    This makes slow retrievers, and retrievers that learn from all chunks, usable for any number of
    files. A document that is not a collection is one file.

    Attributes:
        first: Retriever whose hits choose the files; it should return many.
        then: Retriever that finds passages in the chosen files; without it, the hits of the first
            retriever in these files are returned.
        files: Number of files per question.
        each: Maximum number of passages per file; 0 for no limit.
    """

    first: Retriever
    then: Retriever | None = None
    files: Positive = 10
    each: Count = 0

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example in its chosen files, best first."""
        rankings = retrieve(self.first, examples, chunks)
        return [self._in_files(*pair, chunks) for pair in zip(examples, rankings, strict=True)]

    def _in_files(self, example: Example, hits: list[Hit], chunks: Sequence[Chunk]) -> list[Hit]:
        ranked = dict.fromkeys(_file(hit.chunk) for hit in hits)
        # A file ranks by its best passage: a sum would prefer long files.
        chosen = {*[*ranked][: self.files]}
        if self.then and hits:
            inside = tuple(chunk for chunk in chunks if _file(chunk) in chosen)
            [hits] = retrieve(self.then, [example], inside)
        counts: Counter[int] = Counter()
        best = []
        for hit in hits:
            number = _file(hit.chunk)
            counts[number] += 1
            if number in chosen and counts[number] <= (self.each or len(hits)):
                best.append(hit)
        return best


def _file(chunk: Chunk) -> int:
    return member_at(chunk.document, chunk.start)


@dataclass(frozen=True)
class ByQuestion:
    """Uses another retriever for questions, but all chunks for summaries and statements.

    To find that a document does not mention a statement, the reader must read all chunks.

    Attributes:
        retriever: Retriever for questions.
        complete: Number of chunks up to which a document is returned completely for questions too:
            the hits, then the other chunks. This answers questions that are worded differently.
    """

    retriever: Retriever
    complete: Count = 0

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example; chunks that are added without a search score 0."""
        flags = [_needs_all(example) for example in examples]
        searched = [e for e, needs_all in zip(examples, flags, strict=True) if not needs_all]
        hits = iter(retrieve(self.retriever, searched, chunks) if searched else ())
        return [
            [Hit(chunk, 0.0) for chunk in chunks]
            if needs_all
            else self._completed(next(hits), chunks)
            for needs_all in flags
        ]

    def _completed(self, hits: list[Hit], chunks: Sequence[Chunk]) -> list[Hit]:
        if len(chunks) > self.complete:
            return hits
        spans = [span for hit in hits for span in spans_of(hit.chunk)]
        others = [
            Hit(chunk, 0.0)
            for chunk in chunks
            if not any(span.overlaps(chunk.start, chunk.end) for span in spans)
        ]
        if others and not hits:
            note("a document is short, so all its passages are read")
        return [*hits, *others]


def _needs_all(example: Example) -> bool:
    form = wanted(example.question, example.instruction)
    return form is Wanted.WHOLE or is_statement(example.question)
