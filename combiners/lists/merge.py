"""Items that passages were read for, those that are the same brought together."""

from __future__ import annotations

import dataclasses
from bisect import bisect, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import regex

from leporello.combiners.lists.parse import items, key, similarity
from leporello.combiners.stuff import read_of
from leporello.core.items import Item
from leporello.core.records import Chunk, Example, Output, Read, Span


def reads_of(
    example: Example, chunks: Sequence[Chunk], instruction: str, choices: tuple[str, ...] = ()
) -> list[Read]:
    """Returns a read of each chunk alone, under this instruction."""
    whole = dataclasses.replace(read_of(example, []), instruction=instruction, choices=choices)
    return [dataclasses.replace(whole, passages=(chunk,)) for chunk in chunks]


def overlapping(one: Span, other: Span) -> bool:
    """Says whether two spans share a character."""
    return one.start < other.end and other.start < one.end


@dataclass
class Gathering:
    """Brings together what passages list.

    Attributes:
        similar: Similarity from which on two items are the same, 0 to 1; 1 is equality of their
            keys.
        verbatim: Whether only items count that stand in the passage as they are called.
        skip: Texts that do not count as an item.
    """

    similar: float
    verbatim: bool
    skip: tuple[str, ...]
    _items: dict[str, _GatheredItem] = field(default_factory=dict, init=False)

    def gather(self, chunks: Sequence[Chunk], outputs: Sequence[Output]) -> list[Item]:
        """Returns the items, in the order in which they were first listed."""
        for chunk, output in zip(chunks, outputs, strict=True):
            for name, text in self._listed(output.text):
                places = [*_mentions(chunk, text)]
                if places or not self.verbatim:
                    self._item_of(name, text).add(chunk.span, places or [chunk.span])
        return [Item(gathered.text, tuple(gathered.passages)) for gathered in self._items.values()]

    def _listed(self, text: str) -> Iterable[tuple[str, str]]:
        """Returns the items of a list by their keys, the first of those that are the same."""
        skipped = {key(text) for text in self.skip}
        named: dict[str, str] = {}
        for item in items(text):
            named.setdefault(key(item), item)
        return [(name, named[name]) for name in named if name and name not in skipped]

    def _item_of(self, name: str, text: str) -> _GatheredItem:
        """Returns the item of this key, or the most similar one, or a new one."""
        if name not in self._items and self.similar < 1:
            scores = {other: similarity(name, other) for other in self._items}
            best = max(scores, key=lambda other: scores[other], default="")
            name = best if scores.get(best, 0) >= self.similar else name
        return self._items.setdefault(name, _GatheredItem(text))


@dataclass
class _GatheredItem:
    """An item, the passages that list it, and the places in them that it was read from.

    Passages come in document order; places are kept ascending, and none overlaps another.
    """

    text: str
    passages: list[Span] = field(default_factory=list)
    places: list[Span] = field(default_factory=list)

    def add(self, passage: Span, places: Sequence[Span]) -> None:
        """Adds a passage, unless all that it has of the item are places of one before it."""
        new = [place for place in places if self._is_new(place)]
        for place in new:
            insort(self.places, place)
        if new and passage not in self.passages[-1:]:
            self.passages.append(passage)

    def _is_new(self, place: Span) -> bool:
        at = bisect(self.places, place)
        return not any(overlapping(place, seen) for seen in self.places[max(at - 1, 0) : at + 1])


def _mentions(chunk: Chunk, text: str) -> Iterator[Span]:
    """Yields where an item stands in a chunk, upper and lower case and blanks set aside."""
    words = r"\s+".join(map(regex.escape, text.split()))
    for match in regex.finditer(rf"(?<!\w){words}(?!\w)", chunk.text, regex.IGNORECASE):
        yield Span(chunk.start + match.start(), chunk.start + match.end())
