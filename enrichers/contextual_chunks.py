"""Chunks that begin with a sentence about their place in the document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.notes import note
from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment, Generates, Read
from leporello.text.outline import heading

INSTRUCTION = (
    "Say in one sentence what the last passage is about and where in the document it stands, so"
    " that it can be found. Name whom its pronouns mean."
)


@dataclass(frozen=True)
class ContextualChunks:
    """Puts a sentence of context before each chunk, for searching and for reading.

    Anthropic's contextual retrieval (2024). The rule takes the document's title, the headings of
    the chunk and the names last mentioned before it. A reader sees the chunk after those before it.

    Attributes:
        role: Role of the reader that writes context.
        by: Source of the context: a `rule`, or the `reader`. A reader that does not generate text
            is replaced by the rule, with a note.
        around: Number of chunks before the chunk that a reader sees.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    by: Literal["rule", "reader"] = "rule"
    around: Positive = 3
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per chunk, if the reader generates; returns a passage per chunk."""
        [writes] = yield [Generates()]
        if self.by == "reader" and not writes:
            note("the reader writes no context: the rule made it")
        contexts = [_by_rule(document, chunk) for chunk in chunks]
        if self.by == "reader" and writes:
            outputs = yield [self._read(document, chunks, n) for n in range(len(chunks))]
            # If the reader writes nothing, the headings are still better than no context.
            contexts = [o.text.strip() or rule for o, rule in zip(outputs, contexts, strict=True)]
        return [
            Passage.of("context", [text, chunk], [chunk]) if text and chunk.text.strip() else chunk
            for text, chunk in zip(contexts, chunks, strict=True)
        ]

    def _read(self, document: Document, chunks: Sequence[Chunk], number: int) -> Read:
        shown = chunks[max(0, number - self.around) : number + 1]
        return Read(tuple(shown), instruction=self.instruction, title=document.title)


def _by_rule(document: Document, chunk: Chunk) -> str:
    mentioned = ", ".join(last_names(document, chunk))
    return "; ".join(filter(None, (place(document, chunk), mentioned and f"before: {mentioned}")))


_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]+(?:\s[^\W\d_a-z][\w'’-]+){0,3}")
# The next word begins a sentence, so its capital does not make it a name.
_SENTENCE_START = re.compile(r"(?:^|[.!?…:\n])(?:[^\S\n]|[\"“'’(])*+$")
_BEFORE = 1500  # characters before a chunk that are searched for names
_NAMES = 2


def place(document: Document, chunk: Chunk) -> str:
    """Returns the document's title and the headings of a chunk; empty without any."""
    return " > ".join(filter(None, (document.title, heading(document, chunk.start))))


def last_names(document: Document, chunk: Chunk) -> list[str]:
    """Returns the names last mentioned before a chunk and not in it, the last one first."""
    before = document.text[max(0, chunk.start - _BEFORE) : chunk.start]
    mentioned = (
        " ".join(match.group().split())
        for match in _NAME.finditer(before)
        if " " in match.group()
        or not _SENTENCE_START.search(before, max(0, match.start() - 9), match.start())
    )
    names = reversed([*mentioned])
    new = (name for name in dict.fromkeys(names) if name.split()[-1] not in chunk.text)
    return [name for name, _ in zip(new, range(_NAMES), strict=False)]
