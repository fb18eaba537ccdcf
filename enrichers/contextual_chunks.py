"""Chunks, each behind a sentence that says where it belongs."""

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
    """Puts a sentence of context before each chunk: it is searched and read with it.

    Anthropic's contextual retrieval (2024). By rule it is the document's title, the headings around
    the chunk and who was last named before it; a reader is given what stands around the chunk.

    Attributes:
        role: Role of the reader that writes context.
        by: What makes it: a `rule`, or the `reader`, if it writes; else the rule, with a note.
        around: Number of chunks before that a reader is shown.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    by: Literal["rule", "reader"] = "rule"
    around: Positive = 3
    instruction: str = INSTRUCTION

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read a chunk, if a reader writes; returns a passage a chunk."""
        [writes] = yield [Generates()]
        if self.by == "reader" and not writes:
            note("the reader writes no context: it was made by rule")
        told = [_by_rule(document, chunk) for chunk in chunks]
        if self.by == "reader" and writes:
            outputs = yield [self._read(document, chunks, n) for n in range(len(chunks))]
            told = [o.text.strip() or rule for o, rule in zip(outputs, told, strict=True)]
        return [
            Passage.of("context", [text, chunk], [chunk]) if text and chunk.text.strip() else chunk
            for text, chunk in zip(told, chunks, strict=True)
        ]

    def _read(self, document: Document, chunks: Sequence[Chunk], number: int) -> Read:
        shown = chunks[max(0, number - self.around) : number + 1]
        return Read(tuple(shown), instruction=self.instruction, title=document.title)


def _by_rule(document: Document, chunk: Chunk) -> str:
    named = ", ".join(last_names(document, chunk))
    return "; ".join(filter(None, (place(document, chunk), named and f"before: {named}")))


_NAME = re.compile(r"\b[^\W\d_a-z][\w'’-]+(?:\s[^\W\d_a-z][\w'’-]+){0,3}")
_OPENS = re.compile(
    r"(?:^|[.!?…:\n])(?:[^\S\n]|[\"“'’(])*+$"
)  # behind it a word has a capital anyhow
_BEFORE = 1500  # characters that are looked at for who was last named
_NAMES = 2


def place(document: Document, chunk: Chunk) -> str:
    """Returns the document's title and the headings around a chunk, empty if there are none."""
    return " > ".join(filter(None, (document.title, heading(document, chunk.start))))


def last_names(document: Document, chunk: Chunk) -> list[str]:
    """Returns who was last named before a chunk and is not named in it, the last one first."""
    before = document.text[max(0, chunk.start - _BEFORE) : chunk.start]
    found = (
        " ".join(match.group().split())
        for match in _NAME.finditer(before)
        if " " in match.group()
        or not _OPENS.search(before, max(0, match.start() - 9), match.start())
    )
    names = reversed([*found])
    new = (name for name in dict.fromkeys(names) if name.split()[-1] not in chunk.text)
    return [name for name, _ in zip(new, range(_NAMES), strict=False)]
