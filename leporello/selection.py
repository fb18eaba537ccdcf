"""Divide and select: the hits of all questions on one document, each chunked only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from leporello.calls import asks_question, divide, retrieve
from leporello.config import Built
from leporello.derived import chunks
from leporello.flight import ExampleError, blame
from leporello.nested import load_models
from leporello.notes import hearing
from leporello.records import Chunk, Example, Hit
from leporello.stages import Chunker
from leporello.time_limit import time_limit

__all__ = ["Found", "divided", "select", "select_apart"]


@dataclass(frozen=True, slots=True)
class Found:
    """What was selected for an example.

    Attributes:
        hits: Best first.
        notes: What chunker and retriever noted.
    """

    hits: list[Hit]
    notes: tuple[str, ...] = ()


def select(stages: Built, examples: Sequence[Example]) -> list[Found]:
    """Returns what is found for each example; all are on one document.

    Raises:
        ExampleError: The chunker or the retriever failed.
        UserError: A mistake of the user's.
    """
    with blame("retriever"):
        if asks_question(stages.chunker):
            return [found for example in examples for found in _together(stages, [example])]
        return _together(stages, examples)


def select_apart(
    stages: Built, examples: Sequence[Example], timeout: float | None = None
) -> list[Found | ExampleError]:
    """Returns what is found for each example, or why nothing is.

    After a failure each question is asked on its own, so that only the guilty one fails.

    Args:
        stages: Of which the chunker and the retriever are used.
        examples: All on one document.
        timeout: Seconds that a call may take for each example in it.
    """
    if timeout is not None:  # loading takes its time, and must not be interrupted
        load_models(stages.chunker)
        load_models(stages.retriever)
    try:
        with blame("retriever"), time_limit(None if timeout is None else timeout * len(examples)):
            return [*select(stages, examples)]
    except ExampleError as error:
        if len(examples) == 1:
            return [error]
    return [each for example in examples for each in select_apart(stages, [example], timeout)]


def _together(stages: Built, examples: Sequence[Example]) -> list[Found]:
    with hearing() as notes:
        lists = retrieve(stages.retriever, examples, divided(stages.chunker, examples[0]))
    return [Found(hits, tuple(notes)) for hits in lists]


def divided(chunker: Chunker, example: Example) -> tuple[Chunk, ...]:
    """Returns the chunks of an example's document, made once for all that need the same.

    Raises:
        ExampleError: The chunker failed.
        UserError: A mistake of the user's.
    """
    document = example.document
    question = example.question if asks_question(chunker) else None
    with blame("chunker"):
        return chunks(
            document, chunker, question, partial(divide, chunker, document, question or "")
        )
