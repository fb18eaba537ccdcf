"""Reads all hits as one input, as MuLD's question-answering baselines do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.passages import identity
from leporello.core.protocols import Targets
from leporello.core.records import Chunk, Combination, Example, Fit, Hit, Read

Order = Literal["score", "document"]


def arranged(hits: Sequence[Hit], order: Order) -> list[Hit]:
    """Returns the hits in the given order (best first), or in document order."""
    if order == "score":
        return list(hits)
    # Chunks may overlap or start together, so the end makes the order unique.
    return sorted(hits, key=lambda hit: (hit.chunk.start, hit.chunk.end))


def chunks_of(hits: Sequence[Hit]) -> list[Chunk]:
    """Returns the chunks and passages in document order, each once."""
    # Searches of several queries find the same chunk, and it would fill the window twice.
    return [*{identity(hit.chunk): hit.chunk for hit in arranged(hits, "document")}.values()]


def read_of(example: Example, hits: Sequence[Hit]) -> Read:
    """Returns one read of hits, with the question, instruction and choices of the example."""
    return read_with(example, [hit.chunk for hit in hits])


def read_with(example: Example, passages: Iterable[Chunk | str], instruction: str = "") -> Read:
    """Returns one read of passages; an instruction, if any, replaces the example's."""
    return Read(
        tuple(passages),
        question=example.question,
        instruction=instruction or example.instruction,
        choices=example.choices,
        title=example.document.title,
    )


def question_only(example: Example, instruction: str) -> Read:
    """Returns a read of only the question, without passages and choices."""
    return Read((), example.question, instruction, title=example.document.title)


class LearnsReferences:
    """A combiner whose reads all have the example's references as targets."""

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns the references for each read."""
        return [example.references or None for _ in reads]


@dataclass(frozen=True)
class Stuff(LearnsReferences):
    """Reads all hits as one input (MuLD, section 4: "concatenated").

    Attributes:
        order: Order of the hits: `score` puts the best hit first, `document` keeps the document's
            order. The paper does not specify it; with `score`, a short input window cuts the least
            relevant hits.
        fit: Whether to drop the worst-ranked hits until the others fit the input window completely;
            otherwise the reader's `on_overflow` decides. At least the best hit is always read.
    """

    order: Order = "score"
    # Off, since ten chunks are four windows of T5, and the paper leaves the rest open: of 22 % of
    # a document, T5 sees 2.2 % (decision 17).
    fit: bool = False

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read and returns its text; without hits, the read has only the question."""
        if self.fit:
            # Only the reader can count: its template, chat turns and choices need tokens.
            [fits] = yield [Fit(read_of(example, hits))]
            # By rank before the order changes: in document order the last chunks are not the worst.
            hits = hits[: max(fits, 1)]
        [output] = yield [read_of(example, arranged(hits, self.order))]
        return str(output.text)
