"""Data that can be gone through from the beginning only, read at several places in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(slots=True)
class ForwardReader(Generic[Item]):
    """Items by their numbers; an iterator goes on to a later item, and never back.

    Iterators stay open between readings, no more of them than there were readings at once.

    Attributes:
        begin: Function that starts at the first item.
    """

    begin: Callable[[], Iterator[Item]]
    _idle: list[tuple[int, Iterator[Item]]] = field(default_factory=list, init=False)

    def items(self, numbers: Iterable[int]) -> Iterator[Item]:
        """Yields the items of these numbers, quick if they grow; it ends at one that is missing."""
        cursor = None  # number of the next item, and the iterator
        try:
            for number in numbers:
                if cursor and cursor[0] > number:
                    self._idle.append(cursor)
                    cursor = None
                following, items = cursor or self._nearest(number)
                cursor = None  # an iterator that raises is not used again
                for item in islice(items, number - following, number - following + 1):
                    cursor = number + 1, items
                    yield item
                if not cursor:
                    return
        finally:
            if cursor:
                self._idle.append(cursor)

    def _nearest(self, number: int) -> tuple[int, Iterator[Item]]:
        before = [cursor for cursor in self._idle if cursor[0] <= number]
        if not before:
            self._idle.clear()
            return 0, self.begin()
        nearest = max(before, key=itemgetter(0))
        self._idle.remove(nearest)
        return nearest
