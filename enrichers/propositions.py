"""Statements that stand alone, by which chunks are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.notes import note
from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment, Generates, Read
from leporello.enrichers.contextual_chunks import last_names, place
from leporello.text.english.clauses import clause_spans

_LONGEST = 30  # words of a clause


@dataclass(frozen=True)
class Propositions:
    """Searches single statements, and reads the chunks they are in, or the statements alone.

    Dense X Retrieval (Chen et al., EMNLP 2024). A reader that writes is asked for statements; else
    clauses are taken as they stand, with title, headings and who was last named before them.

    Attributes:
        role: Role of the reader that states.
        count: Number of statements a chunk at most.
        read: What is read of a statement that is found: its `chunk`, or the `proposition` alone.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    count: Positive = 20
    read: Literal["chunk", "proposition"] = "chunk"
    instruction: str = (
        "Write all that this text states as short sentences that can be understood alone, with"
        " names in place of pronouns, each in a line of its own."
    )

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read a chunk, if a reader writes; returns passages of statements."""
        [writes] = yield [Generates()]
        if writes:
            reads = [Read((c,), instruction=self.instruction, title=document.title) for c in chunks]
            stated = [_lines(output.text) for output in (yield reads)]
        else:
            note("the reader writes no statements: clauses were taken as they stand")
            stated = [_clauses(document, chunk) for chunk in chunks]
        made: list[Chunk] = []
        for chunk, statements in zip(chunks, stated, strict=True):
            few = statements[: self.count] if chunk.text.strip() else []
            for text in few:
                parts: list[Chunk | str] = [chunk if self.read == "chunk" else text]
                made.append(Passage.of("proposition", parts, [chunk], text))
            made += [] if few else [chunk]
        return made


def _lines(text: str) -> list[str]:
    lines = (re.sub(r"^(?:[-*•]|\d+[.)])\s*", "", line.strip()) for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if any(map(str.isalnum, line)))]


def _clauses(document: Document, chunk: Chunk) -> list[str]:
    about = "; ".join(filter(None, (place(document, chunk), *last_names(document, chunk))))
    texts = (chunk.text[start:end] for start, end in clause_spans(chunk.text, _LONGEST))
    return [f"{about}: {text}" if about else text for text in texts]
