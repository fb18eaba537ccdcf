"""The actor that reads windows, with its own model or by dealing them out to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from leporello.errors import UserError
from leporello.executors.on_ray.hands import NoRoomError, RayHands
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.orders import Bench, told
from leporello.executors.on_ray.wire import Block, Crowded, Packed, Said, unwrapped
from leporello.executors.sending import unpack
from leporello.nested import load_models
from leporello.reading import Pool, Tally, replicate, settle
from leporello.records import Document, Read

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["Lead"]

T = TypeVar("T")


class Lead:
    """Reads for all combiners, wherever they are."""

    def __init__(self, orders: bytes, kit: Kit) -> None:
        """Opens nothing yet; see `Bench`."""
        self._bench = Bench(orders, kit)
        self._documents: dict[int, dict[int, Document]] = {}  # by block, by place in it

    def arrive(self) -> None:
        """Says that there was room for the actor."""

    def prepare(self, sizes: Mapping[str, int]) -> UserError | Crowded | None:
        """Opens the orders; has other actors load the model, if there are any.

        Args:
            sizes: That the reader found itself in an earlier process.
        """
        return _placed(lambda: self._prepare(sizes))

    def _prepare(self, sizes: Mapping[str, int]) -> None:
        orders, reader = self._bench.orders, self._bench.stages[0].reader  # which is that of all
        settle(reader, sizes)
        if orders.replicas > 1:
            replicate(reader, orders.replicas, RayHands(orders.gpus, orders.cpus, self._bench.kit))
            load_models(reader)  # now: workers leave them the room that they need

    def sizes(self) -> Mapping[str, int] | UserError | Crowded:
        """Returns the sizes that the reader finds itself, for which it may load its model."""
        return _placed(lambda: self._pools[0].sizes)

    def read(
        self,
        pipeline: int,
        window: Sequence[tuple[Packed, Sequence[int]]],
        blocks: Mapping[int, ObjectRef[Block]],
        forget: Sequence[int],
    ) -> Said | UserError | Crowded:
        """Reads a window.

        Args:
            pipeline: Whose it is.
            window: Packed reads, and the places of those that are in the window.
            blocks: Those that they name.
            forget: Blocks that no later window names.
        """
        return _placed(lambda: self._read(pipeline, window, blocks, forget))

    @cached_property
    def _pools(self) -> list[Pool]:
        timeout = self._bench.orders.timeout
        return [Pool(each.reader, self._bench.cache, timeout) for each in self._bench.stages]

    def _read(
        self,
        pipeline: int,
        window: Sequence[tuple[Packed, Sequence[int]]],
        blocks: Mapping[int, ObjectRef[Block]],
        forget: Sequence[int],
    ) -> Said:
        for number in forget:
            self._documents.pop(number, None)
        reads: list[Read] = []
        for packed, places in window:
            every = unpack(packed.reads, self._document(packed, blocks))
            reads += [every[place] for place in places]
        pool = self._pools[pipeline]
        pool.tally = Tally()
        replies = pool.read(reads)
        return Said(tuple(replies), pool.tally, pool.sizes)

    def _document(self, packed: Packed, blocks: Mapping[int, ObjectRef[Block]]) -> Document:
        import ray

        documents = self._documents.setdefault(packed.block, {})
        if packed.document not in documents:
            sheaf = unwrapped(ray.get(blocks[packed.block]), packed.document)
            documents[packed.document] = document = sheaf.examples[0].document
            if cache := self._bench.cache:
                document.keep_on(cache)
        return documents[packed.document]


def _placed(work: Callable[[], T]) -> T | UserError | Crowded:
    """Returns what work comes to, unless those who are to do it find no room."""

    def tried() -> T | Crowded:
        try:
            return work()
        except NoRoomError:
            return Crowded()

    return told(tried)
