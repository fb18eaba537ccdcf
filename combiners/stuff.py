"""Reads all hits as one input, as MuLD's baselines do, or first for questions in the question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leporello.core.calls.answers import is_answer, with_more
from leporello.core.calls.contracts import run_combiner
from leporello.core.passages import identity
from leporello.core.protocols import Combiner, Positive, Targets
from leporello.core.records import (
    JSON,
    Asking,
    Chunk,
    Combination,
    Example,
    Fit,
    Hit,
    Output,
    Read,
    Search,
)
from leporello.text.english.questions import Nested, Wanted, wanted

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


def wants_short_answer(example: Example) -> bool:
    """Returns whether an example needs a few words: not a summary, and without choices."""
    form = wanted(example.question, example.instruction)
    return bool(example.question) and not example.choices and form is Wanted.SHORT


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


@dataclass(frozen=True)
class NestedQuestions(LearnsReferences):
    """Answers the questions within a question first, each with a search of its own.

    "Where was the author of Emma born?" becomes "Who is the author of Emma?", and "Where was Jane
    Austen born?". Rules for English find the inner question: a relation such as `author of`,
    `Emma's author`, or a clause such as `the man who wrote Emma`. If an answer is not sure enough,
    or without a question within the question, another combiner reads the hits for the question.

    Attributes:
        combiner: Combiner that reads the hits for the question itself.
        steps: Maximum number of inner questions.
    """

    combiner: Combiner = field(default_factory=Stuff)
    steps: Positive = 3

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields a search and a read per inner question and for the last one, if there are any."""
        # An answer with a type is read by the question itself.
        in_steps = wants_short_answer(example) and not example.schema
        answer = (yield from self._in_steps(example)) if in_steps else None
        return answer or (yield from run_combiner(self.combiner, example, hits))

    def _in_steps(self, example: Example) -> Asking[JSON]:
        """Returns the answer by inner questions; None without one, or if an answer is not sure."""
        question, outputs = example.question, list[Output]()
        nested = Nested.of(question)
        while nested and len(outputs) < self.steps:
            if not (output := (yield from self._answer(example, nested.inner))):
                return None
            outputs.append(output)
            question = nested.outer.replace("{}", output.text)
            nested = Nested.of(question)
        if not outputs or not (output := (yield from self._answer(example, question))):
            return None
        # The mean ranks MuSiQue's answers better than the least, the product or the last of them.
        values = [o.probability for o in (*outputs, output) if o.probability is not None]
        confidence = sum(values) / len(values) if len(values) > len(outputs) else None
        return with_more(output.text, confidence=confidence)

    def _answer(self, example: Example, question: str) -> Asking[Output | None]:
        """Returns the answer to a question from a search of its own; None if it is not sure."""
        [hits] = yield [Search(question)]
        [output] = yield [replace(read_of(example, hits), question=question)]
        # The scores of `Embedded` are log odds that an answer is right.
        is_sure = output.score is None or output.score >= 0
        return output if is_sure and is_answer(output.text) else None
