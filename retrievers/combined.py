"""Retrievers that contain others: votes, lots, files first, selection by what is asked."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.ranks import CONSTANT, fused
from leporello.core.calls.stage_calls import retrieve
from leporello.core.members import member_at
from leporello.core.protocols import Count, Positive, Retriever, Share
from leporello.core.records import Chunk, Example, Hit
from leporello.text.english.questions import Wanted, is_statement, wanted


@dataclass(frozen=True)
class Fusion:
    """Adds 1 / (constant + rank) over retrievers (Cormack, Clarke and Buettcher, SIGIR 2009).

    Only ranks count, so that cosines, BM25 scores and logits need no common scale. A chunk that a
    retriever did not return gets nothing from it: let the retrievers return more than k.

    Attributes:
        retrievers: Retrievers that vote; each may itself contain others.
        k: Number of chunks a question gets.
        constant: Constant of the ranks: the larger, the less the first ranks outweigh the later
            ones.
    """

    retrievers: tuple[Retriever, ...]
    k: Positive = 10
    constant: Positive = CONSTANT

    def __post_init__(self) -> None:
        if not self.retrievers:
            raise ValueError("Fusion needs at least one retriever in `retrievers`")

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the k chunks with the highest sums for each example."""
        rankings = [retrieve(retriever, examples, chunks) for retriever in self.retrievers]
        return [fused(votes, self.constant)[: self.k] for votes in zip(*rankings, strict=True)]


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


@dataclass(frozen=True)
class ByQuestion:
    """Gives a question the hits of another retriever; all chunks to a summary and to a statement.

    That a document does not mention what a statement says is known only when all of it was read.

    Attributes:
        retriever: Retriever that questions are given to.
    """

    retriever: Retriever

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the hits of each example; where all chunks are, they score 0, in their order."""
        whole = [_needs_all(example) for example in examples]
        asked = [example for example, all_ in zip(examples, whole, strict=True) if not all_]
        hits = iter(retrieve(self.retriever, asked, chunks) if asked else ())
        return [[Hit(chunk, 0.0) for chunk in chunks] if all_ else next(hits) for all_ in whole]


def _needs_all(example: Example) -> bool:
    asked = wanted(example.question, example.instruction)
    return asked is Wanted.WHOLE or is_statement(example.question)
