"""Chunks that are sections, as headings part them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from leporello import Document, Span
from leporello.chunkers.packing import Units, divided, packed_within, spans, units
from leporello.chunkers.paragraphs import Paragraphs
from leporello.core.notes import note
from leporello.core.protocols import ModelSource, Positive
from leporello.text.headings import headings, is_bare
from leporello.text.sentences import sentence_starts


@dataclass(frozen=True)
class Sections:
    """Sections with their headings, one a chunk (MuLD, section 4: "based on section headings").

    A section's text ends where the next heading stands, be it one of its own subsections. What
    stands before the first heading is a chunk by itself; a heading without text goes with its
    first subsection. A document without headings is divided at paragraphs, and a note says so.

    Attributes:
        size: Number of tokens a chunk at most, where sections are divided or there are none.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        level: Level down to which a section is a chunk; deeper ones stay with what is around them.
            1 divides at the outermost headings only, 2 at those inside them too.
        split_long: Whether a section of more than `size` tokens is divided, at paragraphs if
            possible; otherwise it stays whole, and the reader's `on_overflow` decides.
    """

    size: Positive = 400
    tokenizer: ModelSource = "words"
    level: Positive = 2
    split_long: bool = False

    def chunk(self, document: Document) -> Iterator[Span]:
        """Returns the spans in document order."""
        starts = self._starts(document)
        if not starts:
            if document.text.strip():
                note("no headings found: divided at paragraphs")
            return Paragraphs(self.size, self.tokenizer).chunk(document)
        sections = units(document, self.tokenizer, starts)
        # Whole unless told: the reader knows its window, a chunker does not (decision 13).
        return self._divided(document, sections) if self.split_long else spans(sections)

    def _starts(self, document: Document) -> list[int]:
        """Returns where the sections begin that are chunks."""
        sections = headings(document)
        top = min((section.level for section in sections), default=1)
        headed = {below.start for above, below in pairwise(sections) if is_bare(document, above)}
        starts = (section.start for section in sections if section.level < top + self.level)
        return [start for start in starts if start not in headed]

    def _divided(self, document: Document, sections: Units) -> Iterator[Span]:
        """Yields sections, those over the size in parts of whole paragraphs or what fits."""
        paragraphs = [span.start for span in Paragraphs(0, self.tokenizer).chunk(document)]
        finer = (paragraphs, sentence_starts(document.text))
        pieces = divided(document, self.tokenizer, sections, self.size, *finer)
        fences = [*pieces.starts.searchsorted(sections.starts).tolist(), len(pieces)]
        return packed_within(pieces, pairwise(fences), self.size)
