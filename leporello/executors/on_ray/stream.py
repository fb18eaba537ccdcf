"""The documents of a run, in task order, from the actor that reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from leporello.errors import UserError
from leporello.executors.on_ray.actors import kill
from leporello.executors.on_ray.calls import Calls
from leporello.executors.on_ray.ingest import Done
from leporello.executors.on_ray.wire import Block, Sent, Supply

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["Stream"]

_AT_ONCE = 2  # supplies that are asked for: the next is read while one is taken in
_TRIES = 3  # of an actor that gives nothing


class Stream:
    """Asks for documents as long as there is room for them; an actor that is lost is replaced."""

    def __init__(
        self,
        calls: Calls,
        hire: Callable[[], Any],
        done: Callable[[], Sequence[Done]],
        has_room: Callable[[], bool],
        take: Callable[[Supply, ObjectRef[Block]], None],
    ) -> None:
        """Asks for nothing yet.

        Args:
            calls: Awaits what the actor answers.
            hire: Returns a new actor.
            done: Returns what each pipeline need not do any more.
            has_room: Says whether more documents may be under way.
            take: Called with what comes, in task order.
        """
        self._calls, self._hire, self._done = calls, hire, done
        self._has_room, self._take = has_room, take
        self._actor: Any = None
        self._asked, self._last, self._next, self._losses = 0, False, 0, 0
        self._early: dict[int, tuple[Supply, ObjectRef[Block]]] = {}

    @property
    def ended(self) -> bool:
        """Whether all documents have come."""
        return self._last and not self._asked

    def begin(self) -> None:
        """Hires an actor, which begins behind what has come."""
        self._actor = self._hire()
        self._actor.begin.remote(self._done(), self._next)
        self._asked, self._last = 0, False
        self._early.clear()
        self.ask()

    def ask(self) -> None:
        """Asks for more documents, if there is room for them."""
        while self._asked < _AT_ONCE and not self._last and self._has_room():
            self._asked += 1
            actor = self._actor
            supply, block = actor.next.options(num_returns=2).remote()
            self._calls.add(supply, partial(self._came, actor, block), partial(self._lost, actor))

    def give_up(
        self, pipeline: int, number: int, fault: str, then: Callable[[Sent], None], tries: int = 1
    ) -> None:
        """Has the actor, which has its document, fail an example; calls with what comes of it.

        Raises:
            UserError: The actor is lost over it as well.
        """
        actor = self._actor

        def lost(cause: str) -> None:
            if tries == _TRIES:
                raise UserError(
                    f"example {number} (counted from 0) cannot even be given up: the process that"
                    f" is to {cause}; is its document too large for this machine's memory?"
                )
            self._lost(actor, cause)
            self.give_up(pipeline, number, fault, then, tries + 1)

        self._calls.add(actor.give_up.remote(pipeline, number, fault), then, lost)

    def end(self) -> None:
        """Ends the actor."""
        if self._actor is not None:
            kill(self._actor)

    def _came(self, actor: Any, block: ObjectRef[Block], supply: Supply) -> None:  # noqa: ANN401 -- made by Ray
        if actor is not self._actor:
            return  # another was asked for it since
        self._asked, self._losses = self._asked - 1, 0
        if not supply.extents:
            self._last = True
            return
        self._early[supply.extents[0].first] = supply, block
        while self._next in self._early:  # answers may overtake each other
            supply, block = self._early.pop(self._next)
            self._next = supply.extents[-1].numbers.stop
            self._take(supply, block)
        self.ask()

    def _lost(self, actor: Any, cause: str) -> None:  # noqa: ANN401 -- as above
        if actor is not self._actor:
            return
        kill(actor)
        self._losses += 1
        if self._losses == _TRIES:
            raise UserError(f"the process that reads the task's data {cause}, {_TRIES} times")
        self.begin()
