"""Selection where a question asks for something, everything where all of it must be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.stage_calls import retrieve
from leporello.core.protocols import Retriever
from leporello.core.records import Chunk, Example, Hit
from leporello.text.english.questions import Wanted, is_statement, wanted


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
