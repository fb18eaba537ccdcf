"""Data that can be gone through from the beginning only, read at several places in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(slots=True)
class _Cursor(Generic[Item]):
    """How far one iterator has come: `next` is the number of the item that it yields next."""

    items: Iterator[Item]
    next: int = 0


@dataclass(slots=True)
class ForwardReader(Generic[Item]):
    """Items by their numbers, without ever going back: who asks for a later one goes on.

    Iterators stay open between readings. There are never more of them than there were readings
    at once, each of which has one of its own.

    Attributes:
        begin: Function that starts at the first item.
    """

    begin: Callable[[], Iterator[Item]]
    _idle: list[_Cursor[Item]] = field(default_factory=list, init=False)

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], Item]]:
        """Gives a function that returns the item of a number; quick if numbers grow.

        The function raises LookupError where there are fewer items.
        """
        cursors: list[_Cursor[Item]] = []

        def item(number: int) -> Item:
            if cursors and cursors[0].next > number:
                self._idle.append(cursors.pop())
            cursor = cursors.pop() if cursors else self._nearest(number)
            for found in islice(cursor.items, number - cursor.next, None):
                cursor.next = number + 1
                cursors.append(cursor)  # one that failed is not gone on with
                return found
            raise LookupError(number)

        try:
            yield item
        finally:
            self._idle += cursors

    def _nearest(self, number: int) -> _Cursor[Item]:
        behind = [cursor for cursor in self._idle if cursor.next <= number]
        if not behind:
            self._idle.clear()
            return _Cursor(self.begin())
        nearest = max(behind, key=lambda cursor: cursor.next)
        self._idle.remove(nearest)
        return nearest
