"""Compact storage of statistics of many examples."""

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from leporello.core.environment.json_table import JsonTable
from leporello.metrics.protocol import Statistics


class StatisticsTable(Sequence[Statistics]):
    """Statistics in order; floats with the same names take eight bytes per number.

    Other statistics, such as lists of counts, are stored on disk as JSON.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._numbers = array("d")
        self._on_disk: JsonTable | None = None

    def append(self, statistics: Statistics) -> None:
        """Adds the statistics of an example."""
        self._names = self._names or tuple(statistics)
        floats = statistics and all(type(value) is float for value in statistics.values())
        if self._on_disk is not None:
            self._on_disk.add(len(self), statistics)
        elif floats and tuple(statistics) == self._names:
            self._numbers.extend(statistics.values())
        else:
            table = JsonTable()
            for place, row in enumerate(chain(self, [statistics])):
                table.add(place, row)
            self._on_disk, self._numbers = table, array("d")

    def __len__(self) -> int:
        if self._on_disk is not None:
            return len(self._on_disk)
        return len(self._numbers) // max(1, len(self._names))

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 -- an integer; metrics use no slices
        place = range(len(self))[place]
        if self._on_disk is not None:
            return self._on_disk.get(place)
        width = len(self._names)
        first = place * width
        return dict(zip(self._names, self._numbers[first : first + width], strict=True))

    def __iter__(self) -> Iterator[Statistics]:
        if self._on_disk is not None:
            yield from (statistics for _, statistics in self._on_disk.items())
            return
        numbers = iter(self._numbers)
        for _ in range(len(self)):
            yield dict(zip(self._names, islice(numbers, len(self._names)), strict=True))
