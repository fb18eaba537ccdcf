"""Divide and select: the hits of all questions on one document, each chunked only once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from leporello.calls import asks_question, divide, retrieve
from leporello.config import Built
from leporello.flight import ExampleError, blame
from leporello.records import Chunk, Example, Hit

__all__ = ["select", "select_apart"]


def select(stages: Built, examples: Sequence[Example]) -> list[list[Hit]]:
    """Returns the hits of each example; all are on one document.

    Raises:
        ExampleError: The chunker or the retriever failed.
        UserError: A mistake of the user's.
    """
    with blame("retriever"):
        if asks_question(stages.chunker):
            return [retrieve(stages.retriever, [e], _chunks(stages, e))[0] for e in examples]
        return retrieve(stages.retriever, examples, _chunks(stages, examples[0]))


def select_apart(stages: Built, examples: Sequence[Example]) -> list[list[Hit] | ExampleError]:
    """Returns the hits of each example, or why it has none.

    After a failure each question is asked on its own, so that only the guilty one fails.
    """
    try:
        return [*select(stages, examples)]
    except ExampleError as error:
        if len(examples) == 1:
            return [error]
    return [each for example in examples for each in select_apart(stages, [example])]


def _chunks(stages: Built, example: Example) -> tuple[Chunk, ...]:
    document = example.document
    question = example.question if asks_question(stages.chunker) else ""
    with blame("chunker"):
        chunks: tuple[Chunk, ...] = document.memo(
            ("chunks", repr(stages.chunker), question),
            partial(divide, stages.chunker, document, question),
        )
    return chunks
