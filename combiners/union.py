"""A list over all passages: each lists its own items, and those that are the same are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.lists.parse import Gathering, reads_of
from leporello.combiners.stuff import chunks_of
from leporello.core.items import with_items
from leporello.core.protocols import Positive, Share
from leporello.core.records import Combination, Example, Hit, Output

LIST = (
    "List everything in the text that answers the question, one a line, and nothing else."
    " If there is nothing, write: none"
)


@dataclass(frozen=True)
class Union:
    """Has every hit list its items, and answers with all of them and their passages.

    Items are the same if they are without case, punctuation, and articles in front. Where passages
    overlap, what stands in both is in one. A passage that lists nothing, or says so ("none"), has
    no items. What is scored are the items in one line; `raw` has their passages too.

    Attributes:
        instruction: Instruction under which a passage is read; replaces the task's.
        order: Order of the items: `document` is that of the first mentions; `support` puts items of
            more passages first.
        support: Number of passages below which an item is left out.
        similar: Similarity from which on items are the same: their keys have so much in common, the
            more similar first; 1 asks for equal ones. Names spelt differently want 0.85; numbers
            want 1.
        verbatim: Whether to leave out items that do not stand in their passage as they are called,
            which a small model may have made up.
        skip: Items that do not count, compared as items are.
        separator: Text between items in what is scored.
    """

    instruction: str = LIST
    order: Literal["document", "support"] = "document"
    support: Positive = 1
    # Spelt alike is not the same: it would make one of two dates (decision 24).
    similar: Share = 1.0
    verbatim: bool = False
    skip: tuple[str, ...] = ()
    separator: str = ", "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, all in one round; without hits, none."""
        chunks = chunks_of(hits)
        reads = reads_of(example, chunks, self.instruction)
        outputs: list[Output] = (yield reads) if reads else []
        gathered = Gathering(self.similar, self.verbatim, self.skip).gather(chunks, outputs)
        supported = [item for item in gathered if len(item.passages) >= self.support]
        if self.order == "support":
            supported.sort(key=lambda item: -len(item.passages))
        return with_items(self.separator.join(item.text for item in supported), supported)
