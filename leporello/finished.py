"""Which examples are finished, of however many."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator

__all__ = ["Finished"]

_NOT = -1


class Finished(Collection[int]):
    """The numbers of finished examples, in task order, each with the place of its line.

    Eight bytes for every number up to the highest.
    """

    def __init__(self) -> None:
        """Holds none yet."""
        self._places = array("q")
        self._count = 0

    def __contains__(self, number: object) -> bool:
        """Says whether an example is finished."""
        if not isinstance(number, int) or not 0 <= number < len(self._places):
            return False
        return self._places[number] != _NOT

    def __iter__(self) -> Iterator[int]:
        """Yields the numbers in task order."""
        return (number for number, place in enumerate(self._places) if place != _NOT)

    def __len__(self) -> int:
        """Returns how many examples are finished."""
        return self._count

    def place(self, number: int) -> int:
        """Returns where the line of a finished example begins, in bytes."""
        return self._places[number]

    def add(self, number: int, place: int) -> None:
        """Takes a finished example; of one that is there already, its newer line."""
        if number >= len(self._places):
            self._places.extend([_NOT] * (number + 1 - len(self._places)))
        self._count += self._places[number] == _NOT
        self._places[number] = place

    def remove(self, number: int) -> None:
        """Forgets one.

        Raises:
            KeyError: It is not finished.
        """
        if number not in self:
            raise KeyError(number)
        self._places[number] = _NOT
        self._count -= 1
