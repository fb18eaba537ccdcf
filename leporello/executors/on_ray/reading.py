"""The reader of a pipeline, as its engine sees it; the model is elsewhere."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from leporello.crew import Replies
from leporello.errors import UserError
from leporello.executors.on_ray import room
from leporello.executors.on_ray.actors import kill
from leporello.executors.on_ray.calls import Calls
from leporello.executors.on_ray.wire import Block, Crowded, Far, Packed, Said
from leporello.flight import ReadError
from leporello.reading import Tally
from leporello.records import Output

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["FarPool", "Reader"]

_LOSSES = 24  # of actors, none of which answered; to find a guilty read takes fewer
_TRIES = 3  # of a window whose process dies over it

_log = logging.getLogger("leporello")


class Reader:
    """The actor that leads the reading; one that is lost is replaced.

    Attributes:
        found: Sizes that the reader found itself, as far as known.
        ready: Whether it can be asked.
        crowded: Whether those that read for it wait for room.
        reading: Whether it is at a window.
    """

    def __init__(
        self,
        calls: Calls,
        hire: Callable[[], Any],
        blocks: Mapping[int, ObjectRef[Block]],
        sizes: Mapping[str, int],
    ) -> None:
        """Hires one.

        Args:
            calls: Awaits what it answers.
            hire: Returns a new actor.
            blocks: All that are needed yet, by their numbers.
            sizes: That the reader found itself in an earlier process.
        """
        self._calls, self._hire_actor, self._blocks = calls, hire, blocks
        self.found, self._is_found = sizes, False
        self.reading = self.crowded = self._wants_room = False
        self._losses = 0  # one after the other
        self._hire()

    def _hire(self) -> None:
        self._actor = actor = self._hire_actor()
        self._known: set[int] = set()  # blocks that the actor has
        self._since, self._placed, self.ready = time.monotonic(), False, False

        def arrived(_: None) -> None:
            self._placed |= actor is self._actor

        def prepared(said: Crowded | None) -> None:
            if actor is not self._actor:
                return
            self._hear(said)
            if said is None:
                self.ready = True
            else:
                prepare()

        def lost(cause: str) -> None:
            if actor is self._actor:
                self._replace(cause)

        def prepare() -> None:
            self._calls.add(actor.prepare.remote(self.found), prepared, lost)

        self._calls.add(actor.arrive.remote(), arrived, lost)
        prepare()

    def _hear(self, said: object) -> None:
        """Notes whether those that read have room."""
        self.crowded = self._wants_room = isinstance(said, Crowded)

    def _replace(self, cause: str) -> None:
        """Hires another actor.

        Raises:
            UserError: One after the other is lost, and none answers.
        """
        self._losses += 1
        if self._losses == _LOSSES:
            raise UserError(
                f"the process that reads {cause}, {_LOSSES} times in a row: see whether the model"
                " fits into its memory, and what the log says"
            )
        _log.warning("the process that reads %s; it is started anew", cause)
        kill(self._actor)
        self._hire()

    def finds_no_room(self) -> bool:
        """Says, from time to time, that no node has room for the actor, or for those it leads."""
        late = not self._placed and time.monotonic() - self._since > room.PATIENCE
        if late:
            self._since = time.monotonic()
            _log.warning(
                "the process that reads found no room in the Ray cluster for %.0f s; `ray status`"
                " shows what takes it; waiting goes on",
                room.PATIENCE,
            )
        wanted, self._wants_room = self._wants_room, False
        return late or wanted

    def sizes(self) -> Mapping[str, int]:
        """Returns the sizes that the reader finds itself, for which it may load its model.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
        """
        while not self._is_found:
            said, _ = self._asked(lambda: self._actor.sizes.remote())  # noqa: PLW0108 -- of the actor that is there then
            if said is not None:
                self.found, self._is_found = said, True
        return self.found

    def read(self, pipeline: int, window: Sequence[Far], tries: int = _TRIES) -> list[Said | str]:
        """Returns what is said to a window, in parts; a text tells why the read in it failed.

        Args:
            pipeline: By its place.
            window: Its reads.
            tries: After which it is read in halves, until the guilty read is alone.
        """
        cause = ""
        for _ in range(tries):
            said, cause = self._asked(lambda: self._sent(pipeline, window))
            if said is not None:
                self.found = said.sizes
                return [said]
        if len(window) == 1:
            return [f"the process that read it {cause} each time"]
        half = len(window) // 2
        parts = (window[:half], window[half:])
        return [said for part in parts for said in self.read(pipeline, part, 1)]

    def end(self) -> None:
        """Ends it."""
        kill(self._actor)

    def _sent(self, pipeline: int, window: Sequence[Far]) -> Any:  # noqa: ANN401 -- an ObjectRef
        parts = [(packed, [far.place for far in reads]) for packed, reads in _together(window)]
        wanted = {packed.block for packed, _ in parts}
        forget = [*(self._known - self._blocks.keys())]
        self._known = self._known - {*forget} | wanted
        blocks = {number: self._blocks[number] for number in wanted}
        return self._actor.read.remote(pipeline, parts, blocks, forget)

    def _asked(self, ask: Callable[[], Any]) -> tuple[Any, str]:
        """Returns an answer, or None and why there is none; then the actor has been replaced."""
        while isinstance((said := self._answer(ask))[0], Crowded):
            pass  # others make room meanwhile
        return said

    def _answer(self, ask: Callable[[], Any]) -> tuple[Any, str]:
        self._calls.until(lambda: self.ready)
        actor, came = self._actor, list[tuple[Any, str]]()

        def then(said: object) -> None:
            self._losses = 0
            self._hear(said)
            came.append((said, ""))

        def lost(cause: str) -> None:
            if actor is self._actor:
                self._replace(cause)
            came.append((None, cause))

        self._calls.add(ask(), then, lost)
        self.reading = True
        try:
            self._calls.until(lambda: bool(came))
        finally:
            self.reading = False
        return came[0]


def _together(window: Sequence[Far]) -> Iterator[tuple[Packed, list[Far]]]:
    for _, together in groupby(window, key=lambda far: id(far.among)):
        reads = [*together]
        yield reads[0].among, reads


class FarPool:
    """Reads windows of one pipeline.

    Attributes:
        tally: What reading came to.
        at_once: Inputs that the reader's class wants in one window, 0 if it does not say.
    """

    def __init__(self, reader: Reader, pipeline: int, at_once: int) -> None:
        self._reader, self._pipeline = reader, pipeline
        self.tally, self._at_once = Tally(), at_once

    @property
    def at_once(self) -> int:
        """Inputs that the reader's class wants in one window, 0 if it does not say."""
        return self._at_once

    @property
    def sizes(self) -> Mapping[str, int]:
        """That the reader found itself, or is to find now."""
        return self._reader.sizes()

    def read(self, window: Sequence[Far]) -> Replies:
        """Returns one reply a read.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
        """
        replies: list[Output | ReadError] = []
        for said in self._reader.read(self._pipeline, window):
            if isinstance(said, str):
                replies.append(ReadError(said))
                continue
            replies += said.replies
            self.tally.add(said.tally)
        return replies
