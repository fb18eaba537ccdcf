"""Overlapping windows of a model's tokens, which lose none of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leporello import Document, Span
from leporello.core.protocols import ModelSource, Positive
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class Windows:
    """Windows of `size` tokens, each beginning `stride` tokens behind the one before it.

    They are to be scored, token by token; so white space at their ends is kept, and all windows
    together hold every token. A window has more tokens than `size` only where a character that
    has several would be divided.

    Attributes:
        size: Number of tokens a window; the last one has what is left.
        stride: Number of tokens that a window has anew: half the size is an overlap of 50 %.
        tokenizer: Tokenizer that counts: `words`, or a Hugging Face tokenizer by path or hub id;
            that of the model that reads the windows.
        growing: Whether the first windows grow from `stride` tokens to `size`, as in the code of
            the Shuffle Test's authors; otherwise the first one is full.
    """

    size: Positive = 512
    stride: Positive = 256
    tokenizer: ModelSource = "words"
    growing: bool = False

    def __post_init__(self) -> None:
        if self.stride > self.size:
            raise ValueError(f"stride ({self.stride}) must not be more than size ({self.size})")

    def chunk(self, document: Document) -> Iterator[Span]:
        """Yields the spans in document order."""
        import numpy as np

        ends = np.maximum.accumulate(document.tokens(tokenizer(self.tokenizer))[:, 1])
        # Between tokens that end with the same character is no border.
        cuts = np.append(np.flatnonzero(np.diff(ends, prepend=0)), len(ends))
        edges = [0, *ends.tolist()]
        edges[-1] = len(document.text)
        done = 0
        for first, stop in self._runs(len(ends)):
            last = int(cuts[cuts.searchsorted(stop, "right") - 1])
            if last > done:
                begin = min(int(cuts[cuts.searchsorted(first)]), done)
                yield Span(edges[begin], edges[last])
                done = last

    def _runs(self, tokens: int) -> Iterator[tuple[int, int]]:
        """Yields (first, end) of each window's tokens."""
        reached = 0
        while reached < tokens:
            reached += self.stride if reached or self.growing else self.size
            yield max(reached - self.size, 0), min(reached, tokens)
