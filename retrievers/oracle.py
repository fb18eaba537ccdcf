"""Oracles: what retrieval would find if it knew the answer."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from leporello.core.coverage import letters, merge
from leporello.core.notes import note
from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Example, Hit, Span
from leporello.retrievers.index.postings import in_order
from leporello.text.answer_spans import occurrences
from leporello.text.lcs import lcs_length, places
from leporello.text.squad import normalise


@dataclass(frozen=True)
class Oracle:
    """The chunks that hold the gold evidence, those with most of it first.

    A chunk's score is the share of the evidence's characters that it holds, white space apart;
    equal scores stand in document order. Chunks without any evidence are never returned. A score
    of such a run says that it sees the gold.

    Attributes:
        k: Number of chunks a question gets at most.
    """

    sees_gold: ClassVar[bool] = True

    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the chunks of each example; without evidence there are none, and a note."""
        # Not filled up to k: evidence without noise is what it measures (decision 25).
        hits = [in_order(_with_evidence(example, chunks))[: self.k] for example in examples]
        # A note is told of all examples that are asked together.
        if not all(example.evidence for example in examples):
            note("a question on this document has no gold evidence: nothing is selected for it")
        elif chunks and not all(hits):
            note("no chunk holds the gold evidence of a question on this document")
        return hits


def _with_evidence(example: Example, chunks: Iterable[Chunk]) -> Iterator[Hit]:
    text, evidence = example.document.text, merge(example.evidence)
    total = letters(text, evidence)
    for chunk in chunks:
        touching = (span for span in evidence if span.start < chunk.end and chunk.start < span.end)
        inside = [Span(max(s.start, chunk.start), min(s.end, chunk.end)) for s in touching]
        if inside and (count := letters(text, inside)):
            yield Hit(chunk, count / total)


@dataclass(frozen=True)
class OracleAnswer:
    """The chunks that contain a reference; where none does, those most like one.

    Texts are compared as SQuAD's metrics do. A chunk that contains a reference scores 1; else its
    score is ROUGE-L's recall: the longest common subsequence's share of the reference's words,
    for the best reference. Chunks that share no word are never returned. Equal scores stand in
    document order. A score of such a run says that it sees the gold.

    Attributes:
        k: Number of chunks a question gets at most.
    """

    sees_gold: ClassVar[bool] = True

    k: Positive = 10

    def retrieve(self, examples: Sequence[Example], chunks: Sequence[Chunk]) -> list[list[Hit]]:
        """Returns the chunks of each example; without references there are none, and a note."""
        words: list[list[str]] = []  # of each chunk, once an example needs them

        def chunk_words() -> list[list[str]]:
            if not words:
                words.extend(normalise(chunk.text).split() for chunk in chunks)
            return words

        hits = [self._best(example, chunks, chunk_words) for example in examples]
        if not all(example.references for example in examples):
            note("a question on this document has no reference: nothing is selected for it")
        elif chunks and not all(hits):
            note("no chunk shares a word with a reference of a question on this document")
        return hits

    def _best(
        self, example: Example, chunks: Sequence[Chunk], words: Callable[[], list[list[str]]]
    ) -> list[Hit]:
        if holding := _containing(example, chunks):
            return [Hit(chunk, 1.0) for chunk in holding[: self.k]]
        references = list(filter(None, (normalise(text).split() for text in example.references)))
        if not references:
            return []
        shares = _recalls(references, words())
        return in_order(Hit(c, s) for c, s in zip(chunks, shares, strict=True) if s)[: self.k]


def _containing(example: Example, chunks: Sequence[Chunk]) -> list[Chunk]:
    """Returns the chunks with a reference in them, in document order."""
    per_reference = (occurrences(example.document, text) for text in example.references)
    spans = sorted(span for of_reference in per_reference for span in of_reference)
    starts = [span.start for span in spans]
    # The first end among the spans from each on: does any that begins in a chunk end in it?
    ends = [*accumulate((span.end for span in reversed(spans)), min)][::-1]
    holding = []
    for chunk in chunks:
        first = bisect_left(starts, chunk.start)
        if first < len(ends) and ends[first] <= chunk.end:
            holding.append(chunk)
    return sorted(holding, key=lambda chunk: (chunk.start, chunk.end))


def _recalls(references: Sequence[list[str]], words: Sequence[list[str]]) -> list[float]:
    """Returns ROUGE-L's recall of each chunk, for the reference that suits it best."""
    # Recall, not F1: a chunk is not worse for what it says besides (decision 25).
    tables = [(places(reference), len(reference)) for reference in references]
    return [max(lcs_length(t, size, chunk) / size for t, size in tables) for chunk in words]
