"""Lists or counts the items of all passages; equal items of several passages are merged."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from leporello.combiners.lists.parse import items, key
from leporello.combiners.stuff import chunks_of, read_of
from leporello.core.calls.answers import Item, with_items
from leporello.core.records import Asking, Chunk, Combination, Example, Hit, Output, Span


def _read_each(
    example: Example, hits: Sequence[Hit], instruction: str, choices: tuple[str, ...] = ()
) -> Asking[list[tuple[Chunk, Output]]]:
    """Yields one round with one read per hit; returns the chunks and outputs."""
    ask = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    chunks = chunks_of(hits)
    outputs = yield [dataclasses.replace(ask, passages=(chunk,)) for chunk in chunks]
    return [*zip(chunks, outputs, strict=True)]


@dataclass(frozen=True, kw_only=True)
class GathersItems:
    """A combiner that merges the items of several passages.

    Items are equal if they differ only in case, punctuation and leading articles.

    Attributes:
        verbatim: Whether to leave out items whose text is not in their passage, which a small model
            may have invented.
    """

    # Off, since models may inflect words; on, it removed invented ships (decision 24).
    verbatim: bool = False

    def _gathered(self, outputs: Sequence[tuple[Chunk, Output]]) -> list[Item]:
        """Returns the items in the order of their first mentions, with their passages."""
        gathered: dict[str, tuple[str, dict[Span, None]]] = {}
        for chunk, output in outputs:
            for text in items(output.text):
                if not self.verbatim or _mentions(chunk, text):
                    _, passages = gathered.setdefault(key(text), (text, {}))
                    passages[chunk.span] = None
        return [Item(text, (*passages,)) for text, passages in gathered.values()]


def _mentions(chunk: Chunk, text: str) -> bool:
    """Returns whether a chunk contains an item, ignoring case and white space."""
    words = r"\s+".join(map(regex.escape, text.split()))
    return bool(regex.search(rf"(?<!\w){words}(?!\w)", chunk.text, regex.IGNORECASE))


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
    """

    instruction: str = LIST

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit."""
        gathered = self._gathered((yield from _read_each(example, hits, self.instruction)))
        return with_items(", ".join(item.text for item in gathered), gathered)


_DECIDE = "Does the text answer the question?"


@dataclass(frozen=True)
class Count(GathersItems):
    """Reads every hit separately and answers with a number, and with the counted items.

    Attributes:
        unit: Unit to count: `items` counts the items that `Union` would list; `passages` counts the
            passages for which the reader chooses `yes`, where successive passages that overlap
            count once.
        instruction: Instruction for reading a passage, which replaces the task's; if empty, a
            default for the unit.
    """

    unit: Literal["items", "passages"] = "items"
    instruction: str = ""

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit."""
        choices = ("yes", "no") if self.unit == "passages" else ()
        instruction = self.instruction or (_DECIDE if choices else LIST)
        outputs = yield from _read_each(example, hits, instruction, choices)
        counted = _chosen(outputs) if choices else self._gathered(outputs)
        return with_items(str(len(counted)), counted)


def _chosen(outputs: Sequence[tuple[Chunk, Output]]) -> list[Item]:
    counted: list[Item] = []
    for chunk, output in outputs:
        if key(output.text).split()[:1] != ["yes"]:  # models add an explanation after `yes`
            continue
        # Overlapping passages show the same text, so they support one item (decision 24).
        last = counted[-1].passages if counted else ()
        if any(passage.overlaps(chunk.start, chunk.end) for passage in last):
            counted[-1] = Item("yes", (*last, chunk.span))
        else:
            counted.append(Item("yes", (chunk.span,)))
    return counted
