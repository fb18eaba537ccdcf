"""Baselines that ignore the text, and oracles that use the evidence or references of an example."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import ClassVar

from leporello.core.coverage import letters, merge
from leporello.core.notes import note
from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Example, Hit, Span
from leporello.retrievers.postings import in_order
from leporello.text.lcs import lcs_length, places
from leporello.text.squad import normalise, occurrences


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
        # Text seeds are hashed by SHA-512, so every process draws the same chunks.
        generator = random.Random(repr((self.seed, chunks[0].document.id, question)))
        hits = [Hit(chunk, generator.random()) for chunk in chunks]
        return sorted(hits, key=lambda hit: -hit.score)[: self.k]


@dataclass(frozen=True)
class Oracle:
    """Returns the chunks that contain the gold evidence, those with most of it first.

    The score of a chunk is its share of the evidence's characters, without white space; ties are in
    document order. Chunks without evidence are never returned. Scores of a run with an oracle are
    marked.

    Attributes:
        k: Maximum number of hits per question.
    """

    sees_gold: ClassVar[bool] = True

    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the chunks of each example; without evidence, no chunks and a note."""
        # Not filled up to k, to measure evidence without noise (decision 25).
        hits = [in_order(_with_evidence(example, chunks))[: self.k] for example in examples]
        # A note applies to all examples of the call.
        # A note, not an error: tasks have evidence for some examples only, and each run would
        # repeat the failed ones (decision 25).
        if not all(example.evidence for example in examples):
            note("a question on this document has no gold evidence: nothing is selected for it")
        elif not all(hits):
            note("no chunk contains the gold evidence of a question on this document")
        return hits


def _with_evidence(example: Example, chunks: Iterable[Chunk]) -> Iterator[Hit]:
    # Merged, since overlapping evidence would count its characters twice.
    text, evidence = example.document.text, merge(example.evidence)
    total = letters(text, evidence)
    for chunk in chunks:
        touching = (span for span in evidence if span.overlaps(chunk.start, chunk.end))
        inside = [Span(max(s.start, chunk.start), min(s.end, chunk.end)) for s in touching]
        # Without white space, because chunkers may leave it out at their ends.
        if inside and (count := letters(text, inside)):
            yield Hit(chunk, count / total)


@dataclass(frozen=True)
class OracleAnswer:
    """Returns the chunks that contain a reference, or else the chunks most similar to one.

    Texts are compared in the form of SQuAD's metrics. A chunk that contains a reference scores 1.
    If no chunk does, the score is ROUGE-L's recall for the best reference: the share of its words
    in the longest common subsequence. Chunks that share no word with a reference are never
    returned. Ties are in document order. Scores of a run with an oracle are marked.

    Attributes:
        k: Maximum number of hits per question.
    """

    sees_gold: ClassVar[bool] = True

    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the chunks of each example; without references, no chunks and a note."""
        # Cached and computed when needed: most examples have a chunk with the reference.
        words = cache(lambda: [normalise(chunk.text).split() for chunk in chunks])
        hits = [self._best(example, chunks, words) for example in examples]
        if not all(example.references for example in examples):
            note("a question on this document has no reference: nothing is selected for it")
        elif not all(hits):
            note("no chunk shares a word with a reference of a question on this document")
        return hits

    def _best(
        self, example: Example, chunks: Sequence[Chunk], words: Callable[[], list[list[str]]]
    ) -> list[Hit]:
        # In document order, since all of them contain the reference (decision 25).
        if matches := _containing(example, chunks):
            return [Hit(chunk, 1.0) for chunk in matches[: self.k]]
        # For summaries and free answers, which occur nowhere in the document (decision 25).
        references = list(filter(None, (normalise(text).split() for text in example.references)))
        if not references:
            return []
        shares = _recalls(references, words())
        return in_order(Hit(c, s) for c, s in zip(chunks, shares, strict=True) if s)[: self.k]


def _containing(example: Example, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Returns the chunks that contain a reference, in document order."""
    per_reference = (occurrences(example.document, text) for text in example.references)
    spans = sorted(chain.from_iterable(per_reference))

    starts = [span.start for span in spans]
    containing = []
    for chunk in chunks:
        begun = spans[bisect_left(starts, chunk.start) : bisect_left(starts, chunk.end)]
        if any(span.end <= chunk.end for span in begun):
            containing.append(chunk)
    return sorted(containing, key=lambda chunk: (chunk.start, chunk.end))


def _recalls(references: Sequence[list[str]], words: Sequence[list[str]]) -> list[float]:
    """Returns ROUGE-L's recall of each chunk, for its best reference."""
    # Recall, not F1: further text does not make a chunk worse (decision 25).
    # ROUGE-L, not words in any order, which stop words decide (decision 25).
    tables = [(places(reference), len(reference)) for reference in references]
    return [max(lcs_length(t, size, chunk) / size for t, size in tables) for chunk in words]
