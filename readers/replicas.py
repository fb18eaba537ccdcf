"""Several processes with a reader each, which answer micro-batches side by side."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias
from weakref import finalize

from leporello.errors import UserError
from leporello.executors.hands import Hand, Hands, LocalHands, LostError
from leporello.executors.sending import dump
from readers.batching import Prompt, Reply
from readers.budget import fitting

__all__ = ["Answers", "Replicas"]

Batch: TypeAlias = Sequence[Prompt]

_TRIES = 3  # of a batch whose process dies over it, and of loading


class Answers(Protocol):
    """What a reader does with a micro-batch."""

    def load(self) -> None:
        """Loads the model."""
        ...

    def answer(self, batch: Batch) -> list[Reply]:
        """Returns what the model says to each prompt."""
        ...

    def budget(self) -> int:
        """Returns the tokens of a micro-batch that the memory holds."""
        ...


@dataclass(frozen=True)
class _Served:
    """A reader in its process; it is sent batches, and names of what it is to do besides."""

    reader: Answers

    def __call__(self, asked: Batch | Literal["load", "budget"]) -> object:
        if isinstance(asked, str):
            return getattr(self.reader, asked)()
        return fitting(self.reader.answer, asked)


@dataclass(eq=False)
class _Replica:
    """A process, and what it is at: the place of a batch, loading, or nothing."""

    hand: Hand
    at: int | Literal["loading"] | None = "loading"


class Replicas:
    """Processes that hold a reader each; one that dies is replaced, and its batch read again.

    Which of them reads a batch makes no difference to what it says. They end with this object, or
    with the process that asks.
    """

    def __init__(self, reader: Answers, count: int, hands: Hands[Any] | None = None) -> None:
        """Starts nothing yet.

        Args:
            reader: With no model loaded; it is sent to each process.
            count: How many.
            hands: Where the processes come from; if None, they are beside this one.
        """
        self._held, self._count = dump(_Served(reader)), count
        self._hands: Hands[Any] = hands or LocalHands()
        self._replicas: list[_Replica] = []
        self._lost_in_loading = 0  # in a row
        self._end = finalize(self, _end_all, self._replicas)

    def load(self) -> None:
        """Starts all processes that are not there, and waits until they have loaded the model.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded; or
                processes ended while they were loading.
        """
        with self._whole():
            self._start()
            while loading := [each for each in self._replicas if each.at == "loading"]:
                for replica in self._ready(loading):
                    self._loaded(replica)
                self._start()  # those that died anew

    def budget(self) -> int:
        """Returns the tokens of a micro-batch that the memory holds of each process.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
            RuntimeError: The process that was to find out ended.
        """
        self.load()
        asked = self._replicas[0].hand
        with self._whole():
            asked.send("budget")
            try:
                found: int = asked.receive()
            except LostError as lost:
                raise RuntimeError(f"a process that was to measure its memory {lost}") from lost
        return found // self._hands.sharing(self._count)

    def answers(self, batches: Sequence[Batch]) -> list[list[Reply] | None]:
        """Returns the answers to each batch, in order; the first batches are begun first.

        None for those that exhausted the memory; once one has, no more are begun, and the answer
        to those is None too.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
            RuntimeError: A batch ended its process several times.
        """
        work = _Work(batches)
        with self._whole():
            while work.left:
                self._start()  # those that died anew
                self._hand_out(work)
                for replica in self._ready(
                    [each for each in self._replicas if each.at is not None]
                ):
                    self._take(replica, work)
        return [work.found[place] for place in range(len(batches))]

    def close(self) -> None:
        """Ends all processes; more reading starts new ones."""
        _end_all(self._replicas)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Ends all processes if the block is left early: what they still say has no taker."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        """Has processes that are not there load the model."""
        while len(self._replicas) < self._count:
            self._replicas.append(started := _Replica(self._hands.start(self._held)))
            started.hand.send("load")

    def _ready(self, asked: Sequence[_Replica]) -> list[_Replica]:
        """Waits until any of these has answered or died."""
        there = self._hands.ready([replica.hand for replica in asked])
        return [replica for replica in asked if replica.hand in there]

    def _hand_out(self, work: _Work) -> None:
        """Gives every free process a batch, as long as there are any."""
        for replica in self._replicas:
            if replica.at is None and work.todo:
                replica.at = work.todo.popleft()
                replica.hand.send(work.batches[replica.at])

    def _take(self, replica: _Replica, work: _Work) -> None:
        """Takes an answer, or notices that none will come."""
        if not isinstance(place := replica.at, int):
            self._loaded(replica)
            return
        try:
            work.take(place, replica.hand.receive())
            replica.at = None
        except LostError as lost:
            self._leave(replica)
            work.lost(place, lost)

    def _loaded(self, replica: _Replica) -> None:
        """Takes it that a process has loaded its model, or notices that it never will."""
        try:
            replica.hand.receive()
            replica.at, self._lost_in_loading = None, 0
        except LostError as lost:
            self._leave(replica)
            self._lost_in_loading += 1
            if self._lost_in_loading == _TRIES:
                self._lost_in_loading = 0
                raise UserError(
                    f"a process that was to read {lost} while it loaded the model, {_TRIES} times:"
                    f" is there memory for {self._count}?"
                ) from lost

    def _leave(self, replica: _Replica) -> None:
        self._replicas.remove(replica)
        replica.hand.end()  # one that cannot be reached may still be there


class _Work:
    """Batches that are to be answered."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.batches = batches
        self.todo = deque(range(len(batches)))
        self.found: dict[int, list[Reply] | None] = {}
        self._deaths = [0] * len(batches)

    @property
    def left(self) -> bool:
        return len(self.found) < len(self.batches)

    def take(self, place: int, replies: list[Reply] | None) -> None:
        """Keeps an answer; where there is none for want of memory, no more batches are begun."""
        self.found[place] = replies
        if replies is None:
            self.found |= dict.fromkeys(self.todo)
            self.todo.clear()

    def lost(self, place: int, lost: LostError) -> None:
        """Puts back what a process died over, or gives it up."""
        self._deaths[place] += 1
        if self._deaths[place] == _TRIES:
            raise RuntimeError(f"the process that read it {lost} each time") from lost
        self.todo.appendleft(place)


def _end_all(replicas: list[_Replica]) -> None:
    for replica in replicas:
        replica.hand.end()
    replicas.clear()
