"""Base of the readers that read each input separately, and outputs that copy passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from leporello.core.records import Chunk, Output, Read, Span
from leporello.readers.prompting.template import passage_text, refuse_pairs
from leporello.text.tokens import Words


class OneByOne:
    """A reader whose answer to an input depends only on that input; its tokens are words."""

    depends_on_batch: ClassVar[bool] = False

    def _answer(self, read: Read) -> Output:
        raise NotImplementedError

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order."""
        refuse_pairs(inputs)
        return list(map(self._answer, inputs))

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of words of each text."""
        return [len(Words().offsets(text)) for text in texts]


def copied(read: Read, bounds: Sequence[tuple[int, int]], between: str) -> Output:
    """Returns an output that copies the characters from `start` to `end` of each passage."""
    parts = list(zip(read.passages, bounds, strict=True))
    texts = [passage_text(passage)[start:end] for passage, (start, end) in parts]
    spans = tuple(
        Span(passage.start + start, passage.start + end)
        for passage, (start, end) in parts
        if isinstance(passage, Chunk) and start < end
    )
    cut = sum(len(passage_text(passage)) for passage in read.passages) - sum(map(len, texts))
    return Output(between.join(filter(None, texts)).strip(), read=spans, cut=cut)
