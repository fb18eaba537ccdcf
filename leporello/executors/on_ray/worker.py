"""The actor that divides and selects, and holds the combiners in flight of its documents."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property

from leporello.crew import Crew, Move, Round
from leporello.errors import UserError
from leporello.executors.groups import select_group
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.orders import Bench, told
from leporello.executors.on_ray.wire import Begun, Block, Errand, Sent
from leporello.executors.sending import pack
from leporello.flight import ExampleError
from leporello.records import Example, Read
from leporello.selection import Found

__all__ = ["Worker"]


class Worker:
    """Does errands."""

    def __init__(self, orders: bytes, kit: Kit) -> None:
        """Opens nothing yet; see `Bench`."""
        self._bench = Bench(orders, kit)

    def prepare(self) -> UserError | None:
        """Opens the orders."""
        return told(self._prepare)

    def _prepare(self) -> None:
        assert self._bench.stages, "a run has pipelines"

    @cached_property
    def _crews(self) -> list[Crew]:
        return [self._bench.crew(place) for place in range(len(self._bench.stages))]

    def begin(self, block: Block, errands: Sequence[Errand]) -> list[Begun] | UserError:
        """Divides, selects and starts examples; returns what came of each errand."""
        return told(lambda: [self._begun(block, errand) for errand in errands])

    def deliver(self, pipeline: int, rounds: Sequence[Round]) -> list[Sent] | UserError:
        """Hands replies to combiners of one pipeline; returns their next moves, in order."""
        return told(lambda: [*map(_sent, self._crews[pipeline].deliver(rounds))])

    def _begun(self, block: Block, errand: Errand) -> Begun:
        group = block[errand.document]
        asked = {number: group.examples[number - group.first] for number in errand.selected}
        if cache := self._bench.cache:
            group.examples[0].document.keep_on(cache)
        found, seconds = self._select(errand, [*asked.values()])
        results = dict(zip(asked, found, strict=True))
        crew = self._crews[errand.pipeline]
        moves = [
            crew.launch(number, asked[number], results[number], recorded)
            for number, recorded in errand.launched.items()
        ]
        return Begun(tuple(map(_sent, moves)), seconds)

    def _select(
        self, errand: Errand, examples: Sequence[Example]
    ) -> tuple[Sequence[Found | ExampleError], float]:
        if errand.fault:
            return [ExampleError("retriever", errand.fault)] * len(examples), 0.0
        stages = self._bench.stages[errand.pipeline]
        selection = select_group(stages, examples, self._bench.orders.timeout)
        return selection.found, selection.seconds


def _sent(move: Move[Read]) -> Sent:
    reads = pack(move.reads) if move.reads else b""
    return Sent(dataclasses.replace(move, reads=()), len(move.reads), reads)
