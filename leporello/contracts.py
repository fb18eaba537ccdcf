"""Calls a chunker or a reader, and checks what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from leporello.calls import StageError
from leporello.records import Chunk, Document, Output, Read, Span
from leporello.stages import Chunker, Reader

__all__ = ["asks_question", "divide", "read"]


def asks_question(chunker: Chunker) -> bool:
    """Returns whether a chunker wants the question, and so runs once an example."""
    return "question" in inspect.signature(chunker.chunk).parameters


def divide(chunker: Chunker, document: Document, question: str = "") -> tuple[Chunk, ...]:
    """Returns the chunks of a document.

    Raises:
        StageError: The chunker yields something else than spans within the document.
    """
    wanted = {"question": question} if asks_question(chunker) else {}
    spans = chunker.chunk(document, **wanted)
    if not hasattr(spans, "__iter__"):
        name = type(chunker).__name__
        raise StageError(f"{name}.chunk returned {spans!r:.80}; it must yield Span(start, end)")
    return tuple(_chunk(chunker, document, span) for span in spans)


def _chunk(chunker: Chunker, document: Document, span: object) -> Chunk:
    name = type(chunker).__name__
    if not isinstance(span, Span):
        raise StageError(f"{name}.chunk yielded {span!r:.80}; it must yield Span(start, end)")
    if span.end > len(document.text):
        raise StageError(
            f"{name}.chunk yielded ({span.start}, {span.end}), outside document {document.id!r}"
            f" of {len(document.text)} characters"
        )
    return document.chunk(span.start, span.end)


def read(reader: Reader, inputs: Sequence[Read]) -> list[Output]:
    """Returns the reader's outputs, one an input.

    Raises:
        StageError: The reader returns something else.
    """
    outputs = reader.read(inputs)
    name = type(reader).__name__
    if not isinstance(outputs, (list, tuple)) or len(outputs) != len(inputs):
        count = len(outputs) if isinstance(outputs, (list, tuple)) else repr(outputs)[:80]
        raise StageError(
            f"{name}.read returned {count} for {len(inputs)} inputs;"
            " it must return a list with one Output an input"
        )
    for output, asked in zip(outputs, inputs, strict=True):
        if not isinstance(output, Output) or not isinstance(output.text, str):
            raise StageError(f"{name}.read returned {output!r:.80}; it must return Output(text)")
        if output.scores and len(output.scores) != len(asked.choices):
            raise StageError(
                f"{name}.read gave {len(output.scores)} scores for {len(asked.choices)} choices"
            )
    return list(outputs)
