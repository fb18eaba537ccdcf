"""Passages that are searched by a small text and read as a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.passages import Passage
from leporello.core.protocols import Count
from leporello.core.records import Chunk, Document
from leporello.text.sentences import sentence_spans


@dataclass(frozen=True)
class ParentChunks:
    """Searches sentences or chunks; the text around a hit is read.

    If several hits have the same surrounding text, it is read once, with the best score. After
    LangChain's parent documents and LlamaIndex's sentence windows.

    Attributes:
        by: Text that is searched: each `sentence` of a chunk, or each `chunk`.
        around: Number of chunks before and after the chunk that are read with it.
    """

    by: Literal["sentence", "chunk"] = "sentence"
    around: Count = 0

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Returns a passage per sentence, or per chunk."""
        ordered = sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))
        passages: list[Chunk] = []
        for number, chunk in enumerate(ordered):
            near = ordered[max(0, number - self.around) : number + self.around + 1]
            # The largest end, since chunks may overlap or contain each other.
            parent = document.chunk(near[0].start, max(chunk.end for chunk in near))
            passages += (Passage.of("parent", [parent], [parent], t) for t in self._texts(chunk))
        # A document without text has no sentences, but a retriever needs something to search.
        return passages or [*chunks]

    def _texts(self, chunk: Chunk) -> Iterator[str]:
        if self.by == "chunk":
            yield from [chunk.text] if chunk.text.strip() else []
            return
        for start, end in sentence_spans(chunk.text):
            yield chunk.text[start:end]
