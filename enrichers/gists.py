"""Pages that are found by their summaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.core.passages import Passage
from leporello.core.protocols import ANSWER, Positive, Role
from leporello.core.records import Chunk, Document, Enrichment
from leporello.enrichers.summarising import in_order, summaries


@dataclass(frozen=True)
class Gists:
    """Summarises a document page by page; a search finds pages by their summaries, the gists.

    ReadAgent (Lee et al., ICML 2024): pages consist of chunks, and end at headings that the
    document's format marks. A page without a gist is searched by its text.

    Attributes:
        role: Role of the reader that summarises.
        words: Maximum number of words per page; a longer chunk is one page.
        read: Text of a hit that is read: the `page`, or only its `gist`.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    words: Positive = 400
    read: Literal["page", "gist"] = "page"
    instruction: str = "Shorten these passages to what happens in them. Keep the names."

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read per page; returns a passage per page."""
        pages = [*self._pages(document, in_order(chunks))]
        # A page of one chunk is found by its own text as well as by a summary, without a read.
        gists = yield from summaries([p for p in pages if len(p) > 1], self.instruction)
        passages = [g if self.read == "gist" else _page(g) for g in gists]
        # Pages whose summary was dropped are searched by their chunks, so that no text is lost.
        summarised = {id(chunk) for gist in gists for chunk in gist.sources}
        return [*passages, *(chunk for chunk in chunks if id(chunk) not in summarised)]

    def _pages(self, document: Document, chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
        starts, page, words = {section.start for section in document.sections}, list[Chunk](), 0
        for chunk in chunks:
            length = len(chunk.text.split())
            if page and (words + length > self.words or chunk.start in starts):
                yield page
                page, words = [], 0
            page.append(chunk)
            words += length
        yield page


def _page(gist: Passage) -> Passage:
    """Returns a passage that is searched by a gist and read as the text of the page."""
    return Passage.of("page", gist.sources, gist.sources, gist.reading)
