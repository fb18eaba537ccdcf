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
from leporello.executors.on_ray.wire import Begun, Block, Errand, Sent, Sheaf, unwrapped
from leporello.executors.sending import pack
from leporello.flight import ExampleError
from leporello.records import Example, Read
from leporello.selection import Found

__all__ = ["Worker"]

_TOGETHER = 64  # reads that are packed together: a window unpacks little that is not in it


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
        return told(lambda: self._all_begun(block, errands))

    def deliver(self, pipeline: int, rounds: Sequence[Round]) -> list[Sent] | UserError:
        """Hands replies to combiners of one pipeline; returns their next moves, in order."""
        return told(lambda: [*map(_sent, self._crews[pipeline].deliver(rounds))])

    def _all_begun(self, block: Block, errands: Sequence[Errand]) -> list[Begun]:
        """Opens each document once, so that pipelines share what they derive from it."""
        sheaves = {place: unwrapped(block, place) for place in {e.document for e in errands}}
        if cache := self._bench.cache:
            for sheaf in sheaves.values():
                sheaf.examples[0].document.keep_on(cache)
        return [self._begun(sheaves[errand.document], errand) for errand in errands]

    def _begun(self, sheaf: Sheaf, errand: Errand) -> Begun:
        asked = {number: sheaf.examples[number - sheaf.first] for number in errand.selected}
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
    firsts = range(0, len(move.reads), _TOGETHER)
    reads = [move.reads[first : first + _TOGETHER] for first in firsts]
    return Sent(dataclasses.replace(move, reads=()), [(len(some), pack(some)) for some in reads])
