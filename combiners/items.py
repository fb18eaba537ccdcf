"""Lists or counts the items of all passages."""

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
    # An explicit answer, since models otherwise invent an item rather than write no line.
    " If there is nothing, write: none"
)


@dataclass(frozen=True)
class Union(GathersItems):
    """Lists the items of each hit, and answers with all items by first mention, and their passages.

    A passage without items may give an empty output or "none". Metrics score the items as one line;
    `raw` also contains their passages.

    Attributes:
        instruction: Instruction for reading a passage, which replaces the task's.
        separator: Text between items in the scored line.
    """

    instruction: str = LIST
    separator: str = ", "

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit; without hits, no round."""
        chunks = chunks_of(hits)
        reads = reads_of(example, chunks, self.instruction)
        outputs: list[Output] = (yield reads) if reads else []
        gathered = self._gathered(chunks, outputs)
        return with_items(self.separator.join(item.text for item in gathered), gathered)


_DECIDE = "Does the text answer the question?"


@dataclass(frozen=True)
class Count(GathersItems):
    """Reads every hit separately and answers with a number, and with the counted items.

    Attributes:
        unit: Unit to count: `items` counts the items that `Union` would list; `passages` counts the
            passages for which the reader chooses the first of `choices`, where successive
            passages that overlap count once.
        instruction: Instruction for reading a passage, which replaces the task's; if empty, a
            default for the unit.
        choices: Choices of the decision on a passage.
    """

    unit: Literal["items", "passages"] = "items"
    instruction: str = ""
    choices: tuple[str, str] = ("yes", "no")

    def __post_init__(self) -> None:
        # Compared by first words, since models add an explanation after `yes`.
        yes, no = map(key, self.choices)
        if not yes or not no or _begins_with(yes, no) or _begins_with(no, yes):
            raise ValueError(
                f"Count cannot distinguish {self.choices[0]!r} and {self.choices[1]!r}: use choices"
                " with different first words"
            )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit; without hits, no round."""
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
            if not _begins_with(key(output.text), key(self.choices[0])):
                continue
            # Overlapping passages show the same text, so they support one item (decision 24).
            if counted and any(overlapping(p, chunk.span) for p in counted[-1].passages[::-1]):
                last = counted.pop()
                counted.append(Item(last.text, (*last.passages, chunk.span)))
            else:
                counted.append(Item(self.choices[0], (chunk.span,)))
        return counted


def _begins_with(text: str, choice: str) -> bool:
    """Returns whether a text is a choice, which an explanation may follow."""
    return f"{text} ".startswith(f"{choice} ")
