"""The actor that reads the task's data: beside the driver, where the user's files are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from leporello.errors import UserError
from leporello.executors.groups import by_document
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.orders import Bench, told
from leporello.executors.on_ray.wire import Block, Extent, Sent, Sheaf, Supply, wrapped
from leporello.flight import ExampleError
from leporello.supply import examples_of

__all__ = ["Done", "Ingest", "ranges"]

# A block has less than a call costs, or one document: what a worker is lost over is alone.
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

    def give_up(self, pipeline: int, number: int, fault: str) -> Sent | UserError:
        """Fails an example that no worker can open; finds it by reading the data anew.

        Args:
            pipeline: By its place.
            number: Of the example.
            fault: What the failure tells.
        """
        return told(lambda: self._give_up(pipeline, number, fault))

    def _give_up(self, pipeline: int, number: int, fault: str) -> Sent:
        group = next(group for group in self._groups() if number in group.numbers)
        example, error = group.examples[number - group.first], ExampleError("retriever", fault)
        move = self._bench.crew(pipeline).launch(number, example, error)
        return Sent(move)

    def _all(self, done: Sequence[Done], first: int) -> Iterator[tuple[Supply, Block]]:
        extents: list[Extent] = []
        block: list[bytes] = []
        for group in self._groups():
            if group.first < first:
                continue
            wanted = not all(_all_done(group.numbers, finished) for finished in done)
            characters = len(group.examples[0].document.text)
            held = sum(extent.characters for extent in extents if extent.place is not None)
            full = len(extents) == _DOCUMENTS or held + characters > _CHARACTERS
            if extents and full:
                yield Supply(tuple(extents)), block
                extents, block = [], []
            place = len(block) if wanted else None
            extents.append(Extent(group.first, len(group.examples), characters, place))
            block += [wrapped(group)] if wanted else []
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
