"""Reader that decides between two choices by how much of a document mentions somebody."""

from __future__ import annotations

from dataclasses import dataclass

from leporello.core.protocols import Positive, Share
from leporello.core.records import Chunk, Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.prompting.template import spans_of


@dataclass(frozen=True)
class Presence(OneByOne):
    """Chooses the first choice if passages are in enough parts of a document, or the second.

    Heroes are present throughout a book, villains only in parts of it. Without any passage, the
    answer is the first choice. The score is the share of the parts. On documents that the threshold
    was not chosen on, it was as often right as always answering `Hero` (decision 14).

    Attributes:
        share: Least share of the parts for the first choice.
        parts: Number of equal parts that a document is divided into.
    """

    # The best on 66 characters of nine novels.
    share: Share = 0.45
    parts: Positive = 20

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input.

        Raises:
            ValueError: An input does not have two choices.
        """
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Presence needs two choices, first the one with more presence")
        passages = [passage for passage in read.passages if isinstance(passage, Chunk)]
        parts = {self._part(passage) for passage in passages}
        share = len(parts) / self.parts
        # Without any passage the name was not found, so the commoner answer is the safer one.
        is_second = bool(parts) and share < self.share
        return Output(read.choices[is_second], share, read=spans_of(passages))

    def _part(self, passage: Chunk) -> int:
        # The middle is the mention: MentionWindows centres its chunks.
        middle = (passage.start + passage.end) // 2
        # Plus one, so that a passage at the very end is still in the last part.
        return self.parts * middle // (len(passage.document.text) + 1)
