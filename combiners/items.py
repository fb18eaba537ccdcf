"""Items of all passages: a list of them, or how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.lists.parse import GathersItems, key, overlapping, reads_of
from leporello.combiners.stuff import chunks_of
from leporello.core.calls.answers import Item, with_items
from leporello.core.records import Chunk, Combination, Example, Hit, Output

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


_DECIDE = "Does the text answer the question?"


@dataclass(frozen=True)
class Count(GathersItems):
    """Reads every hit on its own and answers with a number, and with what was counted.

    Attributes:
        unit: Unit that is counted. `items` are listed by each passage, and counted once however
            many list them, as `Union` would list them. `passages` are those for which the reader
            chooses the first of `choices`; passages that overlap and follow each other are one.
        instruction: Instruction under which a passage is read, replacing the task's; if empty, one
            that suits the unit.
        choices: Choices that a passage is decided by.
    """

    unit: Literal["items", "passages"] = "items"
    instruction: str = ""
    choices: tuple[str, str] = ("yes", "no")

    def __post_init__(self) -> None:
        counts, other = map(key, self.choices)
        if not counts or not other or _says(counts, other) or _says(other, counts):
            raise ValueError(
                f"Count tells {self.choices[0]!r} from {self.choices[1]!r} by their first words:"
                " give choices that differ there"
            )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, all in one round; without hits, none."""
        chunks = chunks_of(hits)
        choices = self.choices if self.unit == "passages" else ()
        instruction = self.instruction or (_DECIDE if choices else LIST)
        reads = reads_of(example, chunks, instruction, choices)
        outputs: list[Output] = (yield reads) if reads else []
        counted = self._chosen(chunks, outputs) if choices else self._gathered(chunks, outputs)
        return with_items(str(len(counted)), counted)

    def _chosen(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        counted: list[Item] = []
        for chunk, output in zip(chunks, outputs, strict=True):
            if not _says(key(output.text), key(self.choices[0])):
                continue
            if counted and any(overlapping(p, chunk.span) for p in counted[-1].passages[::-1]):
                last = counted.pop()
                counted.append(Item(last.text, (*last.passages, chunk.span)))
            else:
                counted.append(Item(self.choices[0], (chunk.span,)))
        return counted


def _says(text: str, choice: str) -> bool:
    """Says whether a text is a choice, or goes on after it: readers may explain themselves."""
    return f"{text} ".startswith(f"{choice} ")
