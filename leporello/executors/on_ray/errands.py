"""The errands of a run, dealt out to workers; what a worker was lost over is tried again."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from leporello.crew import Round
from leporello.errors import UserError
from leporello.executors.on_ray import room
from leporello.executors.on_ray.actors import kill
from leporello.executors.on_ray.calls import Calls
from leporello.executors.on_ray.hands import left_with_node
from leporello.executors.on_ray.wire import Begun, Block, Errand, Sent

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["Crewman", "Piece", "Staff"]

_TRIES = 3  # of what kills the process that it is given to
_DEPARTURES = 9  # after which it is no chance that nodes leave, or are out of reach, over it
_QUEUED = 2  # pieces that a worker has at once: the next lies there when it is done with one
_GRACE = 10.0  # seconds beyond a time-out after which a process is killed

_log = logging.getLogger("leporello")


@dataclass(eq=False)
class Piece:
    """What a worker is given at once.

    Attributes:
        block: That the errands are about.
        errands: At least one.
        then: Called with who did it, the piece, and what came of each errand.
        deaths: Of processes over it.
        departures: Of nodes while it was worked on there, for which it is not to blame.
    """

    block: ObjectRef[Block]
    errands: Sequence[Errand]
    then: Callable[[Crewman, Piece, Sequence[Begun]], None]
    deaths: int = 0
    departures: int = 0

    @property
    def calls(self) -> int:
        """Examples that it starts."""
        return sum(len(errand.launched) for errand in self.errands)

    def split(self) -> list[Piece]:
        """Returns a piece for each document, or else for each example and pipeline."""
        documents = dict.fromkeys(errand.document for errand in self.errands)
        if len(documents) > 1:
            parts = [[e for e in self.errands if e.document == place] for place in documents]
        else:
            parts = [[alone] for errand in self.errands for alone in errand.alone()]
        return [replace(self, errands=part) for part in parts]

    def failing(self, told: str) -> Piece:
        """Returns the piece with no more to do than to fail."""
        return replace(self, errands=[replace(e, fault=told) for e in self.errands])


@dataclass(eq=False)
class _Delivery:
    """Replies on their way to combiners.

    Attributes:
        calls: Combiners that get any.
        lost: Called if they do not arrive.
    """

    calls: int
    lost: Callable[[], None]


@dataclass(eq=False)
class Crewman:
    """A worker, and what it is at.

    Attributes:
        actor: Its handle.
        ready: Whether it has opened its orders.
        gone: Whether its process is.
        queue: What it was given, in order.
        since: When it began the first of that, by the monotonic clock.
        over: Why its process was killed by the driver; empty if it was not.
        hired: When, by the monotonic clock.
    """

    actor: Any
    ready: bool = False
    gone: bool = False
    queue: deque[Piece | _Delivery] = field(default_factory=deque)
    since: float = 0.0
    over: str = ""
    hired: float = field(default_factory=time.monotonic)

    @property
    def pieces(self) -> int:
        """Of work that it was given."""
        return sum(isinstance(each, Piece) for each in self.queue)


class Staff:
    """As many workers as are wanted; one that is lost is replaced."""

    def __init__(
        self,
        calls: Calls,
        hire: Callable[[], Any],
        count: int,
        timeout: float | None,
        give_up: Callable[[Crewman, Piece], None],
    ) -> None:
        """Hires nobody yet; see `fill`.

        Args:
            calls: Awaits what they answer.
            hire: Returns a new actor.
            count: Of workers.
            timeout: Seconds that a call may take for each example in it; None is no limit.
            give_up: Called with a piece of one example that was to fail, and with the worker that
                was lost over it.
        """
        self._calls, self._hire, self._timeout = calls, hire, timeout
        self._give_up = give_up
        self._todo: deque[Piece] = deque()
        self._unready = 0  # that were lost one after the other
        self._told = False
        self._count = count
        self._members: list[Crewman] = []

    def hand_out(self, pieces: Iterable[Piece], *, first: bool = False) -> None:
        """Takes pieces in, to be done in their order; those that go first are awaited."""
        self._todo = deque([*pieces, *self._todo] if first else [*self._todo, *pieces])
        self.deal()

    def deal(self) -> None:
        """Gives pieces to those who have fewest, and ends who has hung."""
        while self._todo and (free := self._freest()):
            self._give(free, self._todo.popleft())
        self._tell_waiting()
        if self._timeout is not None:
            self._end_hung(self._timeout)

    def make_room(self) -> None:
        """Lets those go who wait for room themselves, or else one who has some to spare."""
        there = [member for member in self._members if member.ready]
        waiting = [member for member in self._members if not member.ready]
        for member in waiting or sorted(there, key=lambda m: m.pieces)[:-1][:1]:
            self._members.remove(member)
            self._take_back(member)

    def fill(self) -> None:
        """Hires as many as are wanted."""
        self._members += [self._new() for _ in range(self._count - len(self._members))]

    def end(self) -> None:
        """Ends all."""
        for member in self._members:
            kill(member.actor)

    def _new(self) -> Crewman:
        member = Crewman(self._hire())

        def prepared(_: None) -> None:
            member.ready = True
            self.deal()

        self._calls.add(
            member.actor.prepare.remote(), prepared, lambda cause: self._lost(member, cause)
        )
        return member

    def _freest(self) -> Crewman | None:
        free = [m for m in self._members if m.ready and m.pieces < _QUEUED]
        return min(free, key=lambda member: member.pieces, default=None)

    def _give(self, member: Crewman, piece: Piece) -> None:
        def then(answer: Sequence[Begun]) -> None:
            piece.then(member, piece, answer)
            self.deal()

        answer = member.actor.begin.remote(piece.block, piece.errands)
        self._queue(member, piece, answer, then)

    def deliver(
        self,
        member: Crewman,
        pipeline: int,
        rounds: Sequence[Round],
        then: Callable[[Sequence[Sent]], None],
        lost: Callable[[], None],
    ) -> None:
        """Hands replies to the combiners that a worker holds.

        Args:
            member: The worker.
            pipeline: By its place.
            rounds: For each combiner.
            then: Called with the combiners' next moves.
            lost: Called if the worker is gone.
        """
        if member.gone:
            lost()
            return
        answer = member.actor.deliver.remote(pipeline, rounds)
        self._queue(member, _Delivery(len(rounds), lost), answer, then)

    def _queue(
        self,
        member: Crewman,
        what: Piece | _Delivery,
        answer: Any,  # noqa: ANN401 -- an ObjectRef of whatever `then` takes
        then: Callable[[Any], None],
    ) -> None:
        if not member.queue:
            member.since = time.monotonic()
        member.queue.append(what)

        def done(said: Any) -> None:  # noqa: ANN401 -- as above
            if member.gone:
                return  # what it was given has been given to others
            member.queue.remove(what)
            member.since = time.monotonic()
            then(said)

        self._calls.add(answer, done, lambda cause: self._lost(member, cause))

    def _lost(self, member: Crewman, cause: str) -> None:
        """Replaces a worker; what it was at counts a death, what lay before it does not."""
        if member.gone:
            return
        self._replace(member, cause)
        at = member.queue[0] if member.queue else None
        if isinstance(at, Piece):
            member.queue.popleft()
            self.hand_out(self._again(at, member, cause), first=True)
        self._take_back(member)

    def _take_back(self, member: Crewman) -> None:
        """Ends a worker, and gives others what it was given."""
        member.gone = True
        kill(member.actor)  # one that cannot be reached may live
        self.hand_out([each for each in member.queue if isinstance(each, Piece)], first=True)
        for each in member.queue:
            if isinstance(each, _Delivery):
                each.lost()

    def _replace(self, member: Crewman, cause: str) -> None:
        """Hires another worker.

        Raises:
            UserError: One after the other is lost before it is ready.
        """
        _log.warning("a process that selects %s; it is replaced", member.over or cause)
        self._unready = 0 if member.ready else self._unready + 1
        if self._unready >= _TRIES * len(self._members):
            raise UserError(f"no process that selects could start on Ray: the last one {cause}")
        self._members[self._members.index(member)] = self._new()

    def _again(self, piece: Piece, member: Crewman, cause: str) -> list[Piece]:
        """Returns what a process was lost over in smaller pieces, or has it fail."""
        if left_with_node(cause) and not member.over and piece.departures < _DEPARTURES:
            return [replace(piece, departures=piece.departures + 1)]
        piece = replace(piece, deaths=piece.deaths + 1)
        if piece.calls > 1:
            return piece.split()
        if piece.errands[0].fault:  # to open its document was enough
            self._give_up(member, piece)
            return []
        if member.over or piece.deaths >= _TRIES:
            return [piece.failing(member.over or f"its process {cause} each time")]
        return [piece]

    def _tell_waiting(self) -> None:
        """Says once that some workers find no room."""
        late = time.monotonic() - room.PATIENCE
        waiting = [m for m in self._members if not m.ready and m.hired < late]
        if waiting and not self._told:
            self._told = True
            _log.warning(
                "%d of %d workers found no room in the Ray cluster for %.0f s; `ray status` shows"
                " what takes it; those that are there work, and waiting goes on",
                len(waiting), self._count, room.PATIENCE,
            )  # fmt: skip

    def _end_hung(self, timeout: float) -> None:
        for member in self._members:
            if not member.queue or member.over:
                continue
            # All questions together, then each on its own; the process keeps these limits itself.
            limit = 2 * timeout * member.queue[0].calls + _GRACE
            if time.monotonic() - member.since > limit:
                member.over = f"took longer than {timeout:g} s and had to be killed"
                kill(member.actor)
