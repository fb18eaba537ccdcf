"""Several processes with a reader each, which answer micro-batches side by side."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Protocol, TypeAlias
from weakref import finalize

from leporello.errors import UserError
from leporello.executors.beside import CANNOT_BE_SENT, Beside, connected, dump
from readers.batching import Prompt, Reply
from readers.budget import fitting

__all__ = ["Answers", "Replicas", "main"]

Batch: TypeAlias = Sequence[Prompt]

_TRIES = 3  # of a batch whose process dies over it


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


@dataclass(eq=False)
class _Replica:
    """A process, and what it is at."""

    beside: Beside
    place: int = -1


class Replicas:
    """Processes that hold a reader each; one that dies is replaced, and its batch read again.

    Which of them reads a batch makes no difference to what it says. They end with this object, or
    with the process that asks.
    """

    def __init__(self, reader: Answers, count: int) -> None:
        """Starts nothing yet.

        Args:
            reader: With no model loaded; it is sent to each process.
            count: How many; where there are GPUs, they are dealt out among them.
        """
        self._orders, self._count = dump(reader), count
        self._replicas: list[_Replica] = []
        self._end = finalize(self, _end_all, self._replicas)

    def load(self) -> None:
        """Starts all processes that are not there, and waits until they have loaded the model.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
            RuntimeError: A process ended while it was loading.
        """
        try:
            started = [self._start() for _ in range(self._count - len(self._replicas))]
            for replica in started:
                self._told(replica)
        except BaseException:
            self.close()
            raise

    def budget(self) -> int:
        """Returns the tokens of a micro-batch that the memory holds of each process.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
            RuntimeError: The process that was to find out ended.
        """
        self.load()
        asked, *_ = self._replicas
        with suppress(ConnectionError):
            asked.beside.connection.send(None)
        found: int = self._told(asked)
        sharing = math.ceil(self._count / (len(_gpus()) or self._count))  # of one GPU
        return found // sharing

    def answers(self, batches: Sequence[Batch]) -> list[list[Reply] | None]:
        """Returns the answers to each batch, in order; the first batches are begun first.

        None for those that exhausted the memory; once one has, no more are begun, and the answer
        to those is None too.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
            RuntimeError: A batch ended its process several times.
        """
        work = _Work(batches)
        try:
            while work.left:
                self.load()  # those that died anew
                self._hand_out(work)
                for connection in wait([r.beside.connection for r in self._busy()]):
                    [replica] = [r for r in self._busy() if r.beside.connection is connection]
                    self._take(replica, work)
        except BaseException:  # interrupted: what is under way would answer the next question
            self.close()
            raise
        return [work.found[place] for place in range(len(batches))]

    def close(self) -> None:
        """Ends all processes; more reading starts new ones."""
        _end_all(self._replicas)

    def _busy(self) -> list[_Replica]:
        return [replica for replica in self._replicas if replica.place >= 0]

    def _hand_out(self, work: _Work) -> None:
        """Gives every free process a batch, as long as there are any."""
        for replica in self._replicas:
            if replica.place < 0 and work.todo:
                replica.place = work.todo.popleft()
                with suppress(ConnectionError):  # it died; no answer will come
                    replica.beside.connection.send(work.batches[replica.place])

    def _start(self) -> _Replica:
        number = len(self._replicas)
        replica = _Replica(Beside("readers.replicas:main", _alone(number)))
        with suppress(ConnectionError):
            replica.beside.connection.send_bytes(self._orders)
        self._replicas.append(replica)
        return replica

    def _told(self, replica: _Replica) -> Any:  # noqa: ANN401 -- nothing, or a number
        """Waits until a process has loaded its model, or found its budget."""
        try:
            told = replica.beside.connection.recv()
        except (EOFError, ConnectionError):
            cause = replica.beside.cause()
            raise RuntimeError(f"a process that was to read {cause} while it loaded") from None
        if isinstance(told, BaseException):
            raise told
        return told

    def _take(self, replica: _Replica, work: _Work) -> None:
        """Takes an answer, or notices that none will come."""
        place, replica.place = replica.place, -1
        try:
            answer = replica.beside.connection.recv()
        except (EOFError, ConnectionError):
            self._replicas.remove(replica)
            work.lost(place, replica.beside)
            return
        if isinstance(answer, BaseException):
            raise answer
        work.take(place, answer)


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

    def lost(self, place: int, beside: Beside) -> None:
        """Puts back what a process died over, or gives it up."""
        self._deaths[place] += 1
        cause = beside.cause()
        if self._deaths[place] == _TRIES:
            raise RuntimeError(f"the process that read it {cause} each time")
        self.todo.appendleft(place)


def _end_all(replicas: list[_Replica]) -> None:
    for replica in replicas:
        replica.beside.end()
    replicas.clear()


def _alone(number: int) -> dict[str, str]:
    """Returns the variables that leave a process one thread and, where there are GPUs, one of them.

    Threads of several processes would otherwise wait for each other (docs/decisions/0004).
    """
    threads = {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    chosen = {name: os.environ.get(name, usual) for name, usual in threads.items()}
    visible = _gpus()
    return chosen | ({"CUDA_VISIBLE_DEVICES": visible[number % len(visible)]} if visible else {})


def _gpus() -> list[str]:
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name for name in given.split(",") if name]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


def main() -> None:
    """Answers batches until the other side is gone."""
    with suppress(EOFError, ConnectionError):
        connection = connected()
        reader: Answers = connection.recv()
        connection.send(_told(reader.load))
        while True:
            batch = connection.recv()
            work = reader.budget if batch is None else partial(fitting, reader.answer, batch)
            connection.send(_told(work))


def _told(work: Callable[[], object]) -> object:
    try:
        return work()
    except UserError as error:
        return UserError(str(error))
    except Exception as error:
        return _sendable(error)


def _sendable(error: Exception) -> Exception:
    """Returns the error; another with the same words where it cannot be sent."""
    try:
        dump(error)
    except CANNOT_BE_SENT:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
