"""Pages remembered by their gist."""

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
    """Sums up a document page by page; pages are looked up by their gists.

    ReadAgent (Lee et al., ICML 2024): pages end where chunks do, and at headings of the document's
    own. A page without a gist is found by its own words.

    Attributes:
        role: Role of the reader that sums up.
        words: Number of words of a page at most; a chunk of more is a page.
        read: What is read of a page that is found: its `page`, or its `gist` alone.
        instruction: Instruction for the reader.
    """

    role: Role = ANSWER
    words: Positive = 400
    read: Literal["page", "gist"] = "page"
    instruction: str = "Shorten these passages to what happens in them. Keep the names."

    def enrich(self, document: Document, chunks: Sequence[Chunk]) -> Enrichment:
        """Yields a read a page; returns a passage a page."""
        pages = [*self._pages(document, in_order(chunks))]
        made = yield from summaries([p for p in pages if len(p) > 1], self.instruction)
        gists = [g if self.read == "gist" else _page(g) for g in made]
        known = {id(chunk) for gist in made for chunk in gist.sources}
        return [*gists, *(chunk for chunk in chunks if id(chunk) not in known)]

    def _pages(self, document: Document, chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
        begins, page, words = {section.start for section in document.sections}, list[Chunk](), 0
        for chunk in chunks:
            own = len(chunk.text.split())
            if page and (words + own > self.words or chunk.start in begins):
                yield page
                page, words = [], 0
            page.append(chunk)
            words += own
        yield page


def _page(gist: Passage) -> Passage:
    """Returns the page that is found by a gist, and read as it stands."""
    return Passage.of("page", gist.sources, gist.sources, gist.reading)
