"""Chunks that are sections, which headings begin."""

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
    """Sections with their headings, one per chunk (MuLD, section 4: "based on section headings").

    A section's text ends at the next heading, even that of a subsection. The text before the first
    heading is a chunk; a heading without text is in the chunk of its first subsection. A document
    without headings is divided at paragraphs, with a note.

    Attributes:
        size: Maximum number of tokens per chunk, if sections are split or there are no headings.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        level: Level of the deepest headings that begin a chunk: with 1 only the outermost ones do,
            with 2 those inside them too.
        split_long: Whether a section of more than `size` tokens is divided, at paragraphs if
            possible; otherwise it is one chunk, and the reader's `on_overflow` decides.
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
        # Not divided by default: only the reader knows its input window (decision 13).
        return self._divided(document, sections) if self.split_long else spans(sections)

    def _starts(self, document: Document) -> list[int]:
        """Returns the offsets at which sections begin a chunk."""
        sections = headings(document)
        top = min((section.level for section in sections), default=1)
        # A heading alone would be a chunk without content, and would still cost a read.
        joined = {below.start for above, below in pairwise(sections) if is_bare(document, above)}
        starts = (section.start for section in sections if section.level < top + self.level)
        return [start for start in starts if start not in joined]

    def _divided(self, document: Document, sections: Units) -> Iterator[Span]:
        """Yields sections; those over the size are divided at paragraphs, sentences or tokens."""
        paragraphs = [span.start for span in Paragraphs(0, self.tokenizer).chunk(document)]
        finer = (paragraphs, sentence_starts(document.text))
        pieces = divided(document, self.tokenizer, sections, self.size, *finer)
        fences = [*pieces.starts.searchsorted(sections.starts).tolist(), len(pieces)]
        return packed_within(pieces, pairwise(fences), self.size)
