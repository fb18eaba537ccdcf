"""Lists or counts the items of all passages; equal items of several passages are merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import regex

from leporello.combiners.lists.parse import items, key
from leporello.combiners.stuff import chunks_of, read_of
from leporello.core.calls.answers import Item, with_items
from leporello.core.protocols import Positive
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read, Span


def _reads(
    example: Example, chunks: Sequence[Chunk], instruction: str, choices: tuple[str, ...] = ()
) -> list[Read]:
    """Returns one read per chunk, with an instruction."""
    ask = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    return [dataclasses.replace(ask, passages=(chunk,)) for chunk in chunks]


@dataclass(frozen=True, kw_only=True)
class GathersItems:
    """A combiner that merges the items of several passages.

    Items are equal if they differ only in case, punctuation and leading articles. If overlapping
    passages list an item at the same place, only one of them counts.

    Attributes:
        support: Minimum number of passages that list an item.
        verbatim: Whether to leave out items whose text is not in their passage, which a small model
            may have invented.
    """

    support: Positive = 1  # one passage is enough, because most items of a list occur once
    # Off, since models may inflect words; on, it removed invented ships (decision 24).
    verbatim: bool = False

    def _gathered(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        """Returns the items with enough passages, in the order of their first mentions."""
        gathered: dict[str, _GatheredItem] = {}
        for chunk, output in zip(chunks, outputs, strict=True):
            texts: dict[str, str] = {}
            for item in items(output.text):
                texts.setdefault(key(item), item)
            for name, text in texts.items():
                ends = _mention_ends(chunk, text)
                if name and (ends or not self.verbatim):
                    merged = gathered.setdefault(name, _GatheredItem(text))
                    # An inflected item, which the passage does not contain, keeps its support.
                    new = (ends or {chunk.end}) - merged.ends
                    merged.ends |= new
                    # Overlapping passages support an item twice only at different places.
                    if new and chunk.span not in merged.passages[-1:]:
                        merged.passages.append(chunk.span)
        all_items = (Item(item.text, tuple(item.passages)) for item in gathered.values())
        return [item for item in all_items if len(item.passages) >= self.support]


@dataclass
class _GatheredItem:
    text: str
    passages: list[Span] = field(default_factory=list)  # in document order
    ends: set[int] = field(default_factory=set)  # of its mentions; `the cat` ends where `cat` does


def _mention_ends(chunk: Chunk, text: str) -> set[int]:
    """Returns where mentions of an item in a chunk end, ignoring case and white space."""
    words = r"\s+".join(map(regex.escape, text.split()))
    matches = regex.finditer(rf"(?<!\w){words}(?!\w)", chunk.text, regex.IGNORECASE)
    return {chunk.start + match.end() for match in matches}


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
        reads = _reads(example, chunks, self.instruction)
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
        reads = _reads(example, chunks, instruction, choices)
        outputs: list[Output] = (yield reads) if reads else []
        counted = self._chosen(chunks, outputs) if choices else self._gathered(chunks, outputs)
        return with_items(str(len(counted)), counted)

    def _chosen(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        counted: list[Item] = []
        for chunk, output in zip(chunks, outputs, strict=True):
            if not _begins_with(key(output.text), key(self.choices[0])):
                continue
            # Overlapping passages show the same text, so they support one item (decision 24).
            if counted and any(
                p.overlaps(chunk.start, chunk.end) for p in counted[-1].passages[::-1]
            ):
                last = counted.pop()
                counted.append(Item(last.text, (*last.passages, chunk.span)))
            else:
                counted.append(Item(self.choices[0], (chunk.span,)))
        return counted


def _begins_with(text: str, choice: str) -> bool:
    """Returns whether a text is a choice, which an explanation may follow."""
    return f"{text} ".startswith(f"{choice} ")
