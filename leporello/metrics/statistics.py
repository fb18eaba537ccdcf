"""The statistics of very many examples."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import overload

from leporello.metrics.protocol import Statistics


class StatisticsTable(Sequence[Statistics]):
    """Statistics in order; of those that are floats of the same names, eight bytes a number.

    As objects they would take ten times as much. Others, lists of counts say, are kept as they are.
    """

    def __init__(self) -> None:
        """Keeps none yet."""
        self._names: tuple[str, ...] = ()
        self._numbers = array("d")
        self._others: list[Statistics] = []

    def append(self, statistics: Statistics) -> None:
        """Adds those of one more example."""
        self._names = self._names or tuple(statistics)
        floats = statistics and all(type(value) is float for value in statistics.values())
        if floats and not self._others and tuple(statistics) == self._names:
            self._numbers.extend(statistics.values())
            return
        if not self._others:
            self._others = [*self]
            self._numbers = array("d")
        self._others.append(statistics)

    def __len__(self) -> int:
        """Returns the number of examples."""
        return len(self._others) or len(self._numbers) // max(1, len(self._names))

    @overload
    def __getitem__(self, place: int) -> Statistics: ...
    @overload
    def __getitem__(self, place: slice) -> list[Statistics]: ...
    def __getitem__(self, place: int | slice) -> Statistics | list[Statistics]:
        """Returns those of one example, or of some."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if self._others:
            return self._others[place]
        width = len(self._names)
        first = range(len(self))[place] * width
        return dict(zip(self._names, self._numbers[first : first + width], strict=True))

    def __iter__(self) -> Iterator[Statistics]:
        """Yields all of them."""
        if self._others:
            yield from self._others
            return
        numbers = iter(self._numbers)
        for _ in range(len(self)):
            yield dict(zip(self._names, islice(numbers, len(self._names)), strict=True))
