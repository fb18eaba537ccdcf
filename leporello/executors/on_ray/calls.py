"""Calls of actors that are under way, and what is done with their answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from leporello.errors import UserError
from leporello.executors.on_ray.hands import cannot_start, cause_of

if TYPE_CHECKING:
    from ray import ObjectRef

__all__ = ["Calls"]

_LOOK = 0.2  # seconds between looks at the clock and at a wish to stop


@dataclass(frozen=True, slots=True)
class _Awaited:
    then: Callable[[Any], None]
    lost: Callable[[str], None]


class Calls:
    """Hands every answer to whoever waits for it, as it comes."""

    def __init__(self, while_waiting: Callable[[], None]) -> None:
        """Awaits nothing yet.

        Args:
            while_waiting: Called several times a second; what it raises ends the waiting.
        """
        self._while_waiting, self._looked = while_waiting, time.monotonic()
        self._awaited: dict[Future[Any], _Awaited] = {}

    def add(
        self,
        answer: ObjectRef[Any],
        then: Callable[[Any], None],
        lost: Callable[[str], None],
    ) -> None:
        """Awaits an answer.

        Args:
            answer: To be.
            then: Called with it; a `UserError` that is the answer is raised instead.
            lost: Called if none will come; with the cause, as it goes on after "the process".
        """
        self._awaited[answer.future()] = _Awaited(then, lost)

    def until(self, done: Callable[[], bool]) -> None:
        """Takes answers until something is so.

        Raises:
            UserError: One of the answers was a mistake of the user's.
        """
        while not self._is_so(done):
            # Not ray.wait: what a signal's handler raises in it comes out as a SystemError.
            there, _ = wait(self._awaited, _LOOK, FIRST_COMPLETED)
            for answer in [each for each in self._awaited if each in there]:  # as they were asked
                self._take(answer)

    def _is_so(self, done: Callable[[], bool]) -> bool:
        """Says whether something is so; looks about first if it has not for a while."""
        if time.monotonic() - self._looked > _LOOK:
            self._while_waiting()
            self._looked = time.monotonic()
        return done()

    def _take(self, answer: Future[Any]) -> None:
        from ray.exceptions import RayError, RayTaskError

        awaited = self._awaited.pop(answer)
        try:
            said = answer.result()
        except RayTaskError:  # a fault of Leporello's own
            raise
        except RayError as error:
            if getattr(error, "actor_init_failed", False):
                raise UserError(cannot_start(error)) from error
            awaited.lost(cause_of(error))
            return
        if isinstance(said, UserError):
            raise said
        awaited.then(said)
