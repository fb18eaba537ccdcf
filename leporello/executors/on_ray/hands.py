"""Processes that hold an object each, as actors of a Ray cluster."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from leporello.errors import UserError
from leporello.executors.hands import Held, LostError, answer_in
from leporello.executors.on_ray import room
from leporello.executors.on_ray.actors import kill
from leporello.executors.on_ray.kit import Kit
from leporello.executors.on_ray.room import check_room
from leporello.executors.sending import dump

__all__ = ["NoRoomError", "RayHands", "cannot_start", "cause_of", "left_with_node"]

_LOOK = 0.2  # seconds between looks at what is not there yet
_ENDED = "ended with its node, which left the cluster"
_UNREACHABLE = "can no longer be reached (its node may have left the cluster)"
_STATUS = re.compile(r"exit code (\d+)")

_log = logging.getLogger("leporello")


class NoRoomError(UserError):
    """Processes that read find no room in the cluster: others may have to make some."""


@dataclass(frozen=True)
class RayHands:
    """Actors of the Ray that this process is connected to, on whichever nodes have room.

    Attributes:
        gpus: That each reserves, and sees no others; below 1, several share one.
        cpus: That each reserves.
        kit: Put on by each.
    """

    gpus: float
    cpus: float
    kit: Kit
    _checked: list[bool] = field(default_factory=list)

    def start(self, held: bytes) -> _RayHand:
        """Starts an actor, which may have to wait for room; see `Hands`.

        Raises:
            UserError: No node is large enough.
        """
        if not self._checked:  # later the cluster may have shrunk, and grow again
            check_room("reader", self.gpus, self.cpus)
            self._checked.append(True)
        import ray

        made = _actor_class().options(
            num_gpus=self.gpus,
            num_cpus=self.cpus,
            max_restarts=0,  # what it held would be gone
        )
        return _RayHand(made.remote(held, ray.put(self.kit)))

    def ready(self, hands: Sequence[_RayHand]) -> list[_RayHand]:
        """Waits for any of these; what finds no room is told; see `Hands`.

        Raises:
            NoRoomError: None of them has found any for a while.
        """
        while not (there := _answered(hands)):
            late = [hand for hand in hands if hand.is_late()]
            self._tell(late)
            if late and not any(hand.has_room() for hand in hands):
                raise NoRoomError("no process that reads finds room in the Ray cluster")
        return there

    def sharing(self, count: int) -> int:
        """Returns how many of so many processes have one GPU between them."""
        return min(count, int(1 / self.gpus)) if 0 < self.gpus < 1 else 1

    def _tell(self, late: Sequence[_RayHand]) -> None:
        """Says once of each process that it waits for room."""
        if waiting := sum(not hand.has_room() for hand in late):
            _log.warning(
                "%d of the processes that read found no room in the Ray cluster for %.0f s; each"
                " reserves %g GPU and %g CPU. `ray status` shows what takes them; waiting goes on",
                waiting, room.PATIENCE, self.gpus, self.cpus,
            )  # fmt: skip


class _RayHand:
    """An actor."""

    def __init__(self, actor: Any) -> None:  # noqa: ANN401 -- Ray makes its classes as it runs
        self._actor, self._started, self._looked = actor, time.monotonic(), False
        self._there: Future[object] = actor.__ray_ready__.remote().future()
        self.answer: Future[bytes] = Future()

    def send(self, asked: object) -> None:
        self.answer = self._actor.answer.remote(dump(asked)).future()

    def receive(self) -> Any:  # noqa: ANN401 -- as the protocol says
        import ray

        try:
            told = self.answer.result()
        except ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise UserError(cannot_start(error)) from error
            raise LostError(cause_of(error)) from error
        return answer_in(told)

    def end(self) -> None:
        kill(self._actor)

    def is_late(self) -> bool:
        """Says, once, that the process could have been there by now."""
        late = not self._looked and time.monotonic() - self._started > room.PATIENCE
        self._looked |= late
        return late

    def has_room(self) -> bool:
        """Says whether it runs, or ran."""
        return self._there.done()


def _answered(hands: Sequence[_RayHand]) -> list[_RayHand]:
    """Returns which have an answer, or are gone, after a short wait; none if it was too short."""
    # Not ray.wait: what a signal's handler raises in it, as a time-out does, is a SystemError.
    there, _ = wait([hand.answer for hand in hands], _LOOK, FIRST_COMPLETED)
    return [hand for hand in hands if hand.answer in there]


def cause_of(error: Exception) -> str:
    """Says how an actor ended, from what Ray raises where its answer should be."""
    from ray import exceptions

    told = " ".join(str(error).split())
    if isinstance(error, exceptions.OutOfMemoryError):
        return "was killed by Ray, since its node ran low on memory"
    if getattr(error, "preempted", False) or "its node has died" in told:
        return _ENDED
    if isinstance(error, exceptions.ActorUnavailableError | exceptions.NodeDiedError):
        return _UNREACHABLE
    if status := _STATUS.search(told):
        return f"ended with status {status[1]}"
    if "worker process has died" in told:
        return "was killed, or crashed (often for lack of memory)"
    return f"gave no answer ({told:.300})"


def left_with_node(cause: str) -> bool:
    """Says whether a node is the cause, rather than what its process was at."""
    return cause in (_ENDED, _UNREACHABLE)


def cannot_start(error: Exception) -> str:
    """Says why an actor could not be made, for the person who can mend it."""
    *_, last = str(error).strip().splitlines()
    return (
        f"a process cannot start on Ray: {last.strip()}; every node needs this"
        " Leporello, installed or sent with a runtime environment"
    )


class HeldOnRay(Held):
    """What an actor holds, as seen in its process."""

    def __init__(self, held: bytes, kit: Kit) -> None:
        """Takes the object as it was sent.

        Args:
            held: As for `Held`.
            kit: Put on at once, unpacked when the object is.
        """
        super().__init__(held)
        self._kit, self._unpacked = kit, False
        kit.put_on()

    def answer(self, asked: bytes) -> bytes:
        """Returns what the object says; see `Held`."""
        if not self._unpacked:
            self._kit.unpack()
            self._unpacked = True
        return super().answer(asked)


@cache
def _actor_class() -> Any:  # noqa: ANN401 -- made by Ray
    import ray

    return ray.remote(HeldOnRay)
