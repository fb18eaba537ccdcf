"""Small texts to find, larger ones to read."""

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
    """Searches sentences or chunks, and has what is around them read.

    Where several that were found have the same around them, it is read once, with the best score.
    After LangChain's parent documents and LlamaIndex's sentence windows.

    Attributes:
        by: What is searched: each `sentence` of a chunk, or each `chunk`.
        around: Number of chunks before and behind that are read with the chunk.
    """

    by: Literal["sentence", "chunk"] = "sentence"
    around: Count = 0

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Returns a passage a sentence, or a chunk."""
        ordered = sorted(chunks, key=lambda chunk: (chunk.start, chunk.end))
        passages: list[Chunk] = []
        for number, chunk in enumerate(ordered):
            near = ordered[max(0, number - self.around) : number + self.around + 1]
            read = document.chunk(near[0].start, max(each.end for each in near))
            passages += (Passage.of("parent", [read], [read], text) for text in self._found(chunk))
        return passages or [*chunks]

    def _found(self, chunk: Chunk) -> Iterator[str]:
        if self.by == "chunk":
            yield from [chunk.text] if chunk.text.strip() else []
            return
        for start, end in sentence_spans(chunk.text):
            yield chunk.text[start:end]
