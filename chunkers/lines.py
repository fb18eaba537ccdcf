"""Chunks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from leporello import Document, Span
from leporello.chunkers.packing import Units, divided, pack, packed_within, units
from leporello.core.protocols import ModelSource, Positive
from leporello.text.subtitles import cue_lines


@dataclass(frozen=True)
class Lines:
    """Whole lines, as many as have no more than `size` tokens; for dialogue, tables, logs.

    No more than `size` of the document's tokens start inside a chunk, except where a longer line
    is kept whole. Lines end where `str.splitlines` ends them: CR, LF, CRLF, U+2028 and the like.

    Where the text is that of a subtitle file (it begins with a cue of SubRip, or with `WEBVTT`),
    each cue's text makes a chunk, without its number and times: only there something is left out.

    Attributes:
        size: Number of tokens a chunk at most.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
        split_long: Whether a line of more than `size` tokens is cut between tokens, its parts
            packed like lines; otherwise it makes a chunk by itself.
    """

    size: Positive = 200
    tokenizer: ModelSource = "words"
    split_long: bool = True

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        cues = cue_lines(document.text)
        if cues is not None:
            # Told by its beginning: an option could be forgotten, and times be read (decision 15).
            return self._texts([Span(c[0].start, c[-1].end) for c in cues if c], document)
        return pack(self._units(document, line_starts(document.text)), self.size)

    def _units(self, document: Document, boundaries: Sequence[int]) -> Units:
        lines = units(document, self.tokenizer, boundaries)
        return divided(document, self.tokenizer, lines, self.size) if self.split_long else lines

    def _texts(self, texts: Sequence[Span], document: Document) -> Iterator[Span]:
        """Returns chunks of each of these stretches, nothing between them."""
        edges = {edge for text in texts for edge in (text.start, text.end)}
        lines = self._units(document, sorted(edges.union(line_starts(document.text))))
        within = lines.starts.searchsorted([(text.start, text.end) for text in texts])
        return packed_within(lines, within.tolist(), self.size)


def line_starts(text: str) -> list[int]:
    """Returns where lines begin, the end of the text included."""
    return list(accumulate(map(len, text.splitlines(keepends=True)), initial=0))
