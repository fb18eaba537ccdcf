"""Chunks of a fixed number of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
            if _floor(cuts, first + self.size) <= end:
                first = end  # the overlap would leave no room for anything new
            reached = max(_floor(cuts, first + self.size), _ceiling(cuts, end + 1))
            yield first, reached
            if (end := reached) >= last:
                return


def _cuts(tokens: NDArray[np.int64], blank: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Returns the numbers of the tokens that a chunk may begin with, and the number of tokens."""
    import numpy as np

    starts, ends = tokens.T
    is_start = np.ones(len(starts), dtype=bool)
    # Byte-level tokenizers split an emoji or a Chinese character into several tokens.
    is_start[1:] = starts[1:] >= np.maximum.accumulate(ends)[:-1]
    if blank is not None:
        is_start &= ~blank[starts]
    return np.append(np.flatnonzero(is_start), len(tokens))


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
