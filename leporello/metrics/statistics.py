"""The statistics of very many examples."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import overload

from leporello.core.environment.json_table import JsonTable
from leporello.metrics.protocol import Statistics


class StatisticsTable(Sequence[Statistics]):
    """Statistics in order; of those that are floats of the same names, eight bytes a number.

    As objects they would take ten times as much. Others, lists of counts say, lie on disk as JSON.
    """

    def __init__(self) -> None:
        """Keeps none yet."""
        self._names: tuple[str, ...] = ()
        self._numbers = array("d")
        self._others: JsonTable | None = None

    def append(self, statistics: Statistics) -> None:
        """Adds those of one more example."""
        self._names = self._names or tuple(statistics)
        floats = statistics and all(type(value) is float for value in statistics.values())
        if self._others is not None:
            self._others.add(len(self), statistics)
        elif floats and tuple(statistics) == self._names:
            self._numbers.extend(statistics.values())
        else:
            others = JsonTable()
            for place, each in enumerate(chain(self, [statistics])):
                others.add(place, each)
            self._others, self._numbers = others, array("d")

    def __len__(self) -> int:
        """Returns the number of examples."""
        if self._others is not None:
            return len(self._others)
        return len(self._numbers) // max(1, len(self._names))

    @overload
    def __getitem__(self, place: int) -> Statistics: ...
    @overload
    def __getitem__(self, place: slice) -> list[Statistics]: ...
    def __getitem__(self, place: int | slice) -> Statistics | list[Statistics]:
        """Returns those of one example, or of some."""
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        if self._others is not None:
            found: Statistics = self._others.get(place)
            return found
        width = len(self._names)
        first = place * width
        return dict(zip(self._names, self._numbers[first : first + width], strict=True))

    def __iter__(self) -> Iterator[Statistics]:
        """Yields all of them."""
        if self._others is not None:
            yield from (statistics for _, statistics in self._others.items())
            return
        numbers = iter(self._numbers)
        for _ in range(len(self)):
            yield dict(zip(self._names, islice(numbers, len(self._names)), strict=True))
