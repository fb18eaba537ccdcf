"""Chunks of complete lines, rows of tables, sentences, paragraphs and sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from leporello import Document, Span
from leporello.chunkers.packing import Units, divided, pack, spans, units
from leporello.core.notes import note
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.text.headings import headings, is_bare
from leporello.text.sentences import sentence_starts


@dataclass(frozen=True)
class Lines:
    """Packs complete lines into chunks of at most `size` tokens; for dialogue, tables, logs.

    At most `size` of the document's tokens start within a chunk; longer lines are cut between
    tokens. Lines end where `str.splitlines` ends them: CR, LF, CRLF, U+2028 and the like.

    Attributes:
        size: Maximum number of tokens per chunk.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        lines = units(document, self.tokenizer, line_starts(document.text))
        return pack(divided(document, self.tokenizer, lines, self.size), self.size)


def line_starts(text: str) -> list[int]:
    """Returns the offsets at which lines begin, and the length of the text."""
    return list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))


_ROW = re.compile(r".*!|row \d")  # places of rows and cells: `Costs!B7`, `row 7`


@dataclass(frozen=True)
class Rows:
    """Packs complete rows of a table into chunks of at most `size` tokens, table by table.

    The loaders Csv and Sheets write the columns' names into each row, `Item: Rent  Amount: 900`, so
    that a chunk explains its figures. A row of more than `size` tokens is one chunk. A text without
    rows is divided at its lines.

    Attributes:
        size: Maximum number of tokens per chunk.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        rows = units(document, self.tokenizer, line_starts(document.text))
        # Tables stay apart, since their columns have other names.
        return pack(rows, self.size, rows.starts.searchsorted(_tables(document)).tolist())


def _tables(document: Document) -> list[int]:
    """Returns the offsets at which tables begin: after blank lines, if the document has rows."""
    if not any(_ROW.match(place.name) for place in document.places):
        return [0]
    return [0, *(gap.end() for gap in re.finditer("\n\n", document.text))]


@dataclass(frozen=True)
class Paragraphs:
    """Paragraphs, which blank lines separate: one per chunk, or as many as fit.

    With a size, at most `size` of the document's tokens start within a chunk: a longer paragraph
    is divided into sentences, a longer sentence between tokens, and the pieces are packed like
    paragraphs. Paragraphs with tabs are tables, which are divided into rows.

    Attributes:
        size: Maximum number of tokens per chunk; 0 makes each paragraph a chunk, however long.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Count = 0
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = units(document, self.tokenizer, _paragraph_starts(document.text))
        if not self.size:
            return spans(pieces)
        sentences = [*_sentence_starts(pieces, self.size)]
        return pack(divided(document, self.tokenizer, pieces, self.size, sentences), self.size)


def _sentence_starts(paragraphs: Units, size: int) -> Iterator[int]:
    """Yields the offsets at which sentences or rows begin in paragraphs of more tokens."""
    text, ends = paragraphs.text, [*paragraphs.starts[1:].tolist(), len(paragraphs.text)]
    for number in (paragraphs.through - paragraphs.before > size).nonzero()[0].tolist():
        start, end = int(paragraphs.starts[number]), ends[number]
        if text.find("\t", start, end) < 0:
            yield from sentence_starts(text, start, end)
        else:
            yield from (start + row for row in line_starts(text[start:end]))


def _paragraph_starts(text: str) -> list[int]:
    """Returns the ends of blank lines, at which paragraphs begin."""
    lines = pairwise(line_starts(text))
    return [end for start, end in lines if text[start:end].isspace()]


@dataclass(frozen=True)
class Sentences:
    """Packs complete sentences into chunks of at most `size` tokens.

    At most `size` of the document's tokens start within a chunk: a longer sentence is cut between
    tokens, and its pieces are packed like sentences. A blank line always ends a sentence.

    Attributes:
        size: Maximum number of tokens per chunk.
        overlap: Number of sentences at the end of a chunk that the next chunk repeats; fewer if
            the sentence after them would not fit.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces = units(document, self.tokenizer, sentence_starts(document.text))
        # A table or list without stops is one sentence, of any length.
        pieces = divided(document, self.tokenizer, pieces, self.size)
        return pack(pieces, self.size, overlap=self.overlap)


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
        text = document.text
        joined = {below.start for above, below in pairwise(sections) if is_bare(text, above, below)}
        starts = (section.start for section in sections if section.level < top + self.level)
        return [start for start in starts if start not in joined]

    def _divided(self, document: Document, sections: Units) -> Iterator[Span]:
        """Yields sections; those over the size are divided at paragraphs, sentences or tokens."""
        paragraphs = [span.start for span in Paragraphs(0, self.tokenizer).chunk(document)]
        finer = (paragraphs, sentence_starts(document.text))
        pieces = divided(document, self.tokenizer, sections, self.size, *finer)
        return pack(pieces, self.size, pieces.starts.searchsorted(sections.starts).tolist())
