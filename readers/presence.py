"""Which of two choices somebody is, by how much of a document they are in; no model."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.core.protocols import Positive, Share
from leporello.core.records import Chunk, Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.prompting.template import spans_of


@dataclass(frozen=True)
class Presence(OneByOne):
    """Takes the first choice if passages stand in enough of a document's parts, else the second.

    Heroes are there from one end of a book to the other, villains come and go. Of whom there is no
    passage nothing is known, and the first choice stands. The score is the share of the parts.

    Attributes:
        share: Share of the parts from which on it is the first choice.
        parts: Number of equal parts that a document is divided into.
    """

    share: Share = 0.45
    parts: Positive = 20

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input.

        Raises:
            ValueError: There are not two choices.
        """
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Presence tells two choices apart, that of who is there more first")
        passages = [passage for passage in read.passages if isinstance(passage, Chunk)]
        seen = {self._part(passage) for passage in passages}
        share = len(seen) / self.parts
        is_second = bool(seen) and share < self.share
        return Output(read.choices[is_second], share, read=spans_of(passages))

    def _part(self, passage: Chunk) -> int:
        middle = (passage.start + passage.end) // 2
        return self.parts * middle // (len(passage.document.text) + 1)
