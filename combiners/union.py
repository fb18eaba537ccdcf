"""A list over all passages: each lists its own items, and those that are the same are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.lists.parse import GathersItems, reads_of
from leporello.combiners.stuff import chunks_of
from leporello.core.calls.answers import with_items
from leporello.core.records import Combination, Example, Hit, Output

LIST = (
    "List everything in the text that answers the question, one a line, and nothing else."
    " If there is nothing, write: none"
)


@dataclass(frozen=True)
class Union(GathersItems):
    """Has every hit list its items, and answers with all of them and their passages.

    A passage that lists nothing, or says so ("none"), has no items. What is scored are the items in
    one line; `raw` has their passages too.

    Attributes:
        instruction: Instruction under which a passage is read; replaces the task's.
        order: Order of the items: `document` is that of the first mentions; `support` puts items of
            more passages first.
        separator: Text between items in what is scored.
    """

    instruction: str = LIST
    order: Literal["document", "support"] = "document"
    separator: str = ", "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, all in one round; without hits, none."""
        chunks = chunks_of(hits)
        reads = reads_of(example, chunks, self.instruction)
        outputs: list[Output] = (yield reads) if reads else []
        found = self._gathered(chunks, outputs)
        if self.order == "support":
            found.sort(key=lambda item: -len(item.passages))
        return with_items(self.separator.join(item.text for item in found), found)
