"""The actor that reads the task's data: beside the driver, where the user's files are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from leporello.errors import UserError
from leporello.executors.groups import by_document
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.orders import Bench, told
from leporello.executors.on_ray.wire import Block, Extent, Sheaf, Supply
from leporello.supply import examples_of

__all__ = ["Done", "Ingest", "ranges"]

# A block has less than a call costs, or one document.
_DOCUMENTS = 8
_CHARACTERS = 300_000

# Numbers of finished examples, as ranges in ascending order.
Done = Sequence[range]


class Ingest:
    """Reads the data, some documents at a time."""

    def __init__(self, orders: bytes, kit: Kit) -> None:
        """Opens nothing yet; see `Bench`."""
        self._bench = Bench(orders, kit)
        self._blocks: Iterator[tuple[Supply, Block]] | None = None

    def begin(self, done: Sequence[Done], first: int) -> None:
        """Prepares for `next`.

        Args:
            done: For each pipeline that runs, what it need not do any more.
            first: Number of the first example that is wanted.
        """
        self._blocks = self._all(done, first)

    def next(self) -> tuple[Supply | UserError, Block]:
        """Returns the documents that follow, and the examples on those not yet done."""
        assert self._blocks is not None, "it has begun"
        blocks = self._blocks
        answer = told(lambda: next(blocks, (Supply(()), ())))
        return (answer, ()) if isinstance(answer, UserError) else answer

    def _all(self, done: Sequence[Done], first: int) -> Iterator[tuple[Supply, Block]]:
        extents: list[Extent] = []
        block: list[Sheaf] = []
        for group in self._groups():
            if group.first < first:
                continue
            wanted = not all(_all_done(group.numbers, finished) for finished in done)
            characters = len(group.examples[0].document.text)
            place = len(block) if wanted else None
            extents.append(Extent(group.first, len(group.examples), characters, place))
            block += [group] if wanted else []
            held = sum(len(each.examples[0].document.text) for each in block)
            if len(extents) == _DOCUMENTS or held >= _CHARACTERS:
                yield Supply(tuple(extents)), block
                extents, block = [], []
        if extents:
            yield Supply(tuple(extents)), block

    def _groups(self) -> Iterator[Sheaf]:
        orders, task = self._bench.orders, self._bench.task
        examples = islice(examples_of(task, orders.task.name), orders.limit)
        for first, together in by_document(examples):
            yield Sheaf(first, together)


def _all_done(numbers: range, done: Done) -> bool:
    """Says whether one of the ranges, which do not touch each other, has all of these numbers."""
    place = bisect_right(done, numbers.start, key=lambda finished: finished.start) - 1
    return place >= 0 and numbers.stop <= done[place].stop


def ranges(numbers: Iterable[int]) -> list[range]:
    """Returns ascending numbers as ranges."""
    found: list[range] = []
    for number in numbers:
        if found and found[-1].stop == number:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
    return found
