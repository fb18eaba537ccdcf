"""Processes that hold an object each, and do with it one thing at a time."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from multiprocessing.connection import wait
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from leporello.errors import UserError
from leporello.executors.beside import Beside, connected
from leporello.executors.sending import dump, opened

__all__ = ["Hand", "Hands", "Held", "LocalHands", "LostError", "answer_in", "main", "one_thread"]


class LostError(Exception):
    """A process is gone; the text says how, as it would go on after "the process"."""


class Hand(Protocol):
    """A process that holds an object, which is called with whatever is sent."""

    def send(self, asked: object) -> None:
        """Asks for one thing and returns at once; before the next, its answer is to be received."""
        ...

    def receive(self) -> Any:  # noqa: ANN401 -- whatever the object returns
        """Waits for the answer, and returns it.

        Raises:
            LostError: None will come.
            Exception: What the object raised.
        """
        ...

    def end(self) -> None:
        """Kills the process, if it is still there."""
        ...


H = TypeVar("H", bound=Hand)


class Hands(Protocol[H]):
    """Where such processes come from."""

    def start(self, held: bytes) -> H:
        """Starts a process, and returns at once.

        Args:
            held: Its object, as `dump` leaves it.

        Raises:
            UserError: It can be had nowhere.
            OSError: It cannot be started.
        """
        ...

    def ready(self, hands: Sequence[H]) -> list[H]:
        """Waits until any of these has its answer or is gone, and returns all of which that is so.

        Args:
            hands: Each has been asked; at least one.
        """
        ...

    def sharing(self, count: int) -> int:
        """Returns how many of so many processes have one GPU between them."""
        ...


class Held:
    """What a process holds, as seen in that process."""

    def __init__(self, held: bytes) -> None:
        """Takes it as it was sent; it is opened when it is first asked, since that can fail."""
        self._held = held

    def answer(self, asked: bytes) -> bytes:
        """Returns what it says; an error that it raises is an answer too."""
        try:
            return dump(self._object(opened(asked)))
        except UserError as error:
            return dump(UserError(str(error)))
        except Exception as error:
            return _sendable(error)

    @cached_property
    def _object(self) -> Callable[[Any], object]:
        found: Callable[[Any], object] = opened(self._held)
        return found


def _sendable(error: Exception) -> bytes:
    """Returns the error; another with the same words where it cannot be sent, or not be opened."""
    try:
        sent = dump(error)
        opened(sent)
    except Exception:  # whatever its own constructor raises
        return dump(RuntimeError(f"{type(error).__name__}: {error}"))
    return sent


def answer_in(told: bytes) -> Any:  # noqa: ANN401 -- whatever the object returned
    """Returns what `Held.answer` said, or raises it."""
    answer = opened(told)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def one_thread() -> dict[str, str]:
    """Returns the variables that leave a process one thread, unless the user has set them.

    Threads of several processes would otherwise wait for each other (docs/decisions/0004).
    """
    usual = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return {name: os.environ.get(name, value) for name, value in usual.items()}


class LocalHands:
    """Processes beside this one; where there are GPUs, these are dealt out among them."""

    def __init__(self) -> None:
        """Starts nothing yet."""
        self._hands: WeakSet[_LocalHand] = WeakSet()

    def start(self, held: bytes) -> _LocalHand:
        """Starts a process, on the GPU that fewest have; see `Hands`."""
        taken = [hand.gpu for hand in self._hands]
        hand = _LocalHand(held, min(_gpus(), key=taken.count, default=None))
        self._hands.add(hand)
        return hand

    def ready(self, hands: Sequence[_LocalHand]) -> list[_LocalHand]:
        """Waits for any of these; see `Hands`."""
        there = wait([hand.connection for hand in hands])
        return [hand for hand in hands if hand.connection in there]

    def sharing(self, count: int) -> int:
        """Returns how many of so many processes have one GPU between them."""
        return math.ceil(count / (len(_gpus()) or count))


class _LocalHand:
    """A process beside this one."""

    def __init__(self, held: bytes, gpu: str | None) -> None:
        self.gpu = gpu
        visible = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        self._beside = Beside("leporello.executors.hands:main", one_thread() | visible)
        self.connection = self._beside.connection
        self._write(held)

    def send(self, asked: object) -> None:
        self._write(dump(asked))

    def receive(self) -> Any:  # noqa: ANN401 -- as the protocol says
        try:
            told = self.connection.recv_bytes()
        except TimeoutError:  # a limit that the caller has set
            raise
        except (EOFError, OSError):
            raise LostError(self._beside.cause()) from None
        return answer_in(told)

    def end(self) -> None:
        self.gpu = None
        self._beside.end()

    def _write(self, what: bytes) -> None:
        with suppress(ConnectionError):  # it is gone, as receiving will show
            self.connection.send_bytes(what)


def _gpus() -> list[str]:
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def main() -> None:
    """Holds an object, and answers until the other side is gone."""
    with suppress(EOFError, ConnectionError):
        connection = connected()
        held = Held(connection.recv_bytes())
        while True:
            connection.send_bytes(held.answer(connection.recv_bytes()))
