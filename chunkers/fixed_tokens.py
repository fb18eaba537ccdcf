"""Chunks of a number of tokens, in turn or overlapping; the document; the parts of a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from leporello import Document, Span
from leporello.chunkers.packing import check_overlap
from leporello.core.protocols import Count, ModelSource, Positive
from leporello.text.tokens import tokenizer, white_mask

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        text = document.text
        tokens = document.tokens(tokenizer(self.tokenizer))
        if len(tokens) <= self.size:
            yield from _trimmed(text, 0, len(text))
            return
        cuts = _cuts(tokens, self._white(document))
        for first, end in self._runs(cuts):
            start = int(tokens[first, 0]) if first > cuts[0] else 0
            stop = int(tokens[end, 0]) if end < len(tokens) else len(text)
            yield from _trimmed(text, start, stop)

    def _white(self, document: Document) -> NDArray[np.bool_] | None:
        """Returns which characters are white space; None if no token consists of white space."""
        if self.tokenizer == "words":
            return None
        blank: NDArray[np.bool_] = document.memo(white_mask, lambda: white_mask(document.text))
        return blank

    def _runs(self, cuts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Yields (first, end) of each chunk's tokens; both are among the cuts."""
        end, last = int(cuts[0]), int(cuts[-1])
        while True:
            first = _floor(cuts, end - self.overlap)
            reached = _floor(cuts, first + self.size)
            if reached <= end:
                first = end  # the overlap would leave no room for anything new
                reached = max(_floor(cuts, first + self.size), _ceiling(cuts, end + 1))
            yield first, reached
            if (end := reached) >= last:
                return


def _cuts(tokens: NDArray[np.int64], blank: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Returns the numbers of the tokens that a chunk may begin with, and the number of tokens."""
    import numpy as np

    starts, ends = tokens.T
    is_start = np.ones(len(starts) + 1, dtype=bool)  # and the end of the tokens
    # Byte-level tokenizers split an emoji or a Chinese character into several tokens.
    is_start[1:-1] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    if blank is not None:
        is_start[:-1] &= ~blank[starts]
    return is_start.nonzero()[0]


def _floor(cuts: NDArray[np.int64], token: int) -> int:
    return int(cuts[max(0, int(cuts.searchsorted(token, "right")) - 1)])


def _ceiling(cuts: NDArray[np.int64], token: int) -> int:
    return int(cuts[min(len(cuts) - 1, int(cuts.searchsorted(token)))])


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """Yields the span without the white space around it; nothing if the span is blank."""
    chunk = text[start:end]
    if stripped := chunk.strip():
        begin = start + len(chunk) - len(chunk.lstrip())
        yield Span(begin, begin + len(stripped))


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
