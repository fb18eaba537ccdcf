"""Self-contained statements by which a search finds chunks."""

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

_MAX_WORDS = 30  # per clause


@dataclass(frozen=True)
class Propositions:
    """Searches single statements; their chunks are read, or only the statements.

    Dense X Retrieval (Chen et al., EMNLP 2024). A reader that generates text writes statements.
    Otherwise the clauses of the text are statements, after the title, the headings and the names
    last mentioned before the chunk.

    Attributes:
        role: Role of the reader that writes statements.
        count: Maximum number of statements per chunk.
        read: Text of a hit that is read: the `chunk`, or only the `proposition`.
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
        """Yields a read per chunk, if the reader generates; returns passages of statements."""
        [writes] = yield [Generates()]
        if writes:
            reads = [Read((c,), instruction=self.instruction, title=document.title) for c in chunks]
            statements = [_lines(output.text) for output in (yield reads)]
        else:
            note("the reader writes no statements: clauses of the text are used")
            statements = [_clauses(document, chunk) for chunk in chunks]
        passages: list[Chunk] = []
        for chunk, candidates in zip(chunks, statements, strict=True):
            texts = candidates[: self.count] if chunk.text.strip() else []
            for text in texts:
                parts: list[Chunk | str] = [chunk if self.read == "chunk" else text]
                passages.append(Passage.of("proposition", parts, [chunk], text))
            passages += [] if texts else [chunk]
        return passages


def _lines(text: str) -> list[str]:
    lines = (re.sub(r"^(?:[-*•]|\d+[.)])\s*", "", line.strip()) for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if any(map(str.isalnum, line)))]


def _clauses(document: Document, chunk: Chunk) -> list[str]:
    about = "; ".join(filter(None, (place(document, chunk), *last_names(document, chunk))))
    texts = (chunk.text[start:end] for start, end in clause_spans(chunk.text, _MAX_WORDS))
    return [f"{about}: {text}" if about else text for text in texts]
