"""Chunks of a number of tokens, in turn or overlapping; the document; the parts of a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from leporello import Document, Span
from leporello.chunkers.packing import Units, check_overlap
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.text.tokens import tokenizer, white_mask


@dataclass(frozen=True)
class FixedTokens:
    """Chunks of `size` tokens, cut between tokens, even within a sentence.

    At most `size` of the document's tokens start within a chunk, unless a single character has
    more tokens: neither characters nor groups of tokens that share a character are divided. Text
    that the tokenizer drops stays with the token before it.

    Attributes:
        size: Number of tokens per chunk; the last chunk may be shorter.
        overlap: Number of tokens at the end of a chunk that the next chunk repeats.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
    """

    size: Positive = 200
    overlap: Count = 0
    tokenizer: ModelSource = "words"

    def __post_init__(self) -> None:
        check_overlap(self.overlap, self.size)

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        pieces, end = self._units(document), 0
        while end < len(pieces):
            overlapped = pieces.before[end] - self.overlap
            start = max(0, int(pieces.before.searchsorted(overlapped, "right")) - 1)
            if pieces.end_of_run(start, self.size) <= end:
                start = end  # the overlap would leave no room for anything new
            end = pieces.end_of_run(start, self.size)
            yield pieces.run(start, end)

    def _units(self, document: Document) -> Units:
        """Returns the units that begin with the tokens that a chunk may begin with."""
        import numpy as np

        text = document.text
        starts, ends = document.tokens(tokenizer(self.tokenizer)).T
        # Byte-level tokenizers split an emoji or a Chinese character into several tokens.
        is_first = np.ones(len(starts), np.bool_)
        is_first[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
        if self.tokenizer != "words":  # words never consist of white space
            is_first &= ~document.memo(white_mask, lambda: white_mask(text))[starts]
        before = is_first.nonzero()[0]
        offsets = starts[before]
        if not len(before) and text.strip():
            before, offsets = np.zeros((2, 1), np.int64)
        offsets[:1] = len(text) - len(text.lstrip())
        through = np.append(before, len(starts))[1:]
        return Units(text, offsets, before, through)


@dataclass(frozen=True)
class Windows:
    """Chunks of `size` tokens, each beginning `stride` tokens after the previous one.

    Readers score them token by token, so white space at their ends is kept, and together they
    contain every token. A chunk has more than `size` tokens only to avoid dividing a character
    that has several tokens.

    Attributes:
        size: Number of tokens per chunk; the last chunk may be shorter.
        stride: Number of new tokens per chunk: half of `size` is an overlap of 50 %.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id.
            Use the tokenizer of the model that reads the chunks.
        growing: Whether the first chunks grow from `stride` tokens to `size`, as in the code of
            the Shuffle Test's authors; otherwise the first chunk has `size` tokens.
    """

    size: Positive = 512
    # Half of each window overlaps, so that most tokens are scored with much context.
    stride: Positive = 256
    tokenizer: ModelSource = "words"
    growing: bool = False

    def __post_init__(self) -> None:
        if self.stride > self.size:
            raise ValueError(f"stride ({self.stride}) must not be more than size ({self.size})")

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        import numpy as np

        # A character of several tokens, such as an emoji, has the same end for all of them.
        ends = np.maximum.accumulate(document.tokens(tokenizer(self.tokenizer))[:, 1])
        # Tokens that end with the same character cannot be separated.
        cuts = np.append(np.flatnonzero(np.diff(ends, prepend=0)), len(ends))
        edges = [0, *ends.tolist()]
        # White space at the end belongs to no token, but readers count it.
        edges[-1] = len(document.text)
        covered = 0
        for first, stop in self._runs(len(ends)):
            last = int(cuts[cuts.searchsorted(stop, "right") - 1])
            if last > covered:
                begin = min(int(cuts[cuts.searchsorted(first)]), covered)
                yield Span(edges[begin], edges[last])
                covered = last

    def _runs(self, tokens: int) -> Iterator[tuple[int, int]]:
        """Yields (first, end) of each chunk's tokens."""
        reached = 0
        while reached < tokens:
            reached += self.stride if reached or self.growing else self.size
            yield max(reached - self.size, 0), min(reached, tokens)


@dataclass(frozen=True)
class Whole:
    """The complete document as one chunk; no chunk if the document is blank."""

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the span of the text without the white space around it."""
        text = document.text
        if end := len(text.rstrip()):
            yield Span(len(text) - len(text.lstrip()), end)


@dataclass(frozen=True)
class Parts:
    """The document's parts, one per chunk: paragraphs of style change, reviews, summaries.

    Text outside the parts is in no chunk; a document without parts is an error.
    """

    needs_of_task: ClassVar[str] = "parts of the document"

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the parts in document order; raises ValueError for a text without parts."""
        # Not one chunk: a whole book as one part would fail later, or score wrongly.
        if document.text.strip() and not document.parts:
            raise ValueError(
                f"document {document.id!r} has no parts, since its task does not define any: use"
                " Paragraphs, or another chunker that divides the text itself"
            )
        yield from sorted(document.parts)
