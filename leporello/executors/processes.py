"""Divides and selects in processes beside this one, some documents ahead of the reader."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any

from leporello.config import PipelineSpec
from leporello.errors import UserError
from leporello.executors.beside import Beside
from leporello.executors.groups import Group, Selection
from leporello.executors.sending import CANNOT_BE_SENT, dump
from leporello.executors.worker import Answer, Orders, Sent, Work, source_hashes_of
from leporello.flight import ExampleError
from leporello.records import Document, Hit
from leporello.selection import Found

__all__ = ["Processes"]

_DOCUMENTS_AHEAD = 32  # about what fills a window where each document has one question
_CHARACTERS_AHEAD = 8_000_000
_TRIES = 3  # of what kills the process that it is given to
_GRACE = 10.0  # seconds beyond a time-out after which a process is killed
_LOOK = 0.2  # seconds between looks at the clock and at a wish to stop


class _LostError(Exception):
    """A process died over a piece of work, or hung; its text says how."""

    def __init__(self, told: str, *, final: bool = False) -> None:
        super().__init__(told)
        self.final = final


@dataclass
class _Piece:
    """Part of a group: what one process is given at once."""

    pending: _Pending
    examples: tuple[int, ...]
    wanted: tuple[int, ...]
    deaths: int = 0

    @property
    def calls(self) -> int:
        return len(self.examples) * len(self.wanted)

    def work(self) -> Work:
        examples = self.pending.group.examples
        return Work(tuple(examples[place] for place in self.examples), self.wanted)

    def split(self) -> list[_Piece]:
        """Returns one piece for each example and pipeline."""
        return [
            _Piece(self.pending, (example,), (place,), self.deaths)
            for place in self.wanted
            for example in self.examples
        ]

    def keep(self, wanted: int, found: Sequence[Found | ExampleError], seconds: float) -> None:
        self.pending.found.setdefault(wanted, {}).update(zip(self.examples, found, strict=True))
        self.pending.seconds[wanted] = self.pending.seconds.get(wanted, 0.0) + seconds


@dataclass
class _Pending:
    """A group on its way; `left` pieces of it are not answered."""

    group: Group
    left: int = 0
    found: dict[int, dict[int, Found | ExampleError]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)

    @property
    def characters(self) -> int:
        return len(self.group.examples[0].document.text)

    def selections(self) -> dict[int, Selection]:
        places = range(len(self.group.examples))
        return {
            wanted: Selection(tuple(self.found[wanted][p] for p in places), self.seconds[wanted])
            for wanted in self.group.wanted
        }


class _Worker:
    """A process beside this one."""

    def __init__(self) -> None:
        self._beside = Beside("leporello.executors.worker:main")
        self.end = self._beside.end

    def prepare(self, orders: bytes) -> None:
        """Tells the process what it is for, and waits until it is ready.

        Raises:
            UserError: It could not start, or what it is to run has changed meanwhile.
        """
        connection = self._beside.connection
        try:
            connection.send_bytes(orders)
            if isinstance(told := connection.recv(), UserError):
                raise told
        except (EOFError, ConnectionError):
            raise UserError(
                f"a process beside this one could not start (status {self.end()}; what it said"
                " stands above); --workers 0 does its work in this process"
            ) from None

    def answer(self, piece: _Piece, timeout: float | None) -> Answer:
        """Returns the answer to a piece of work.

        Raises:
            _LostError: The process died or hung.
        """
        # All questions together, then each on its own; the process keeps these limits itself.
        limit = None if timeout is None else 2 * timeout * piece.calls + _GRACE
        connection = self._beside.connection
        try:
            connection.send(piece.work())
            if not connection.poll(limit):
                told = f"took longer than {timeout:g} s and had to be killed"
                raise _LostError(told, final=True)
            answer: Answer = connection.recv()
        except (EOFError, ConnectionError):
            raise _LostError(f"its process {self._beside.cause()} each time") from None
        except CANNOT_BE_SENT as error:
            told = f"the example cannot be sent to another process ({error})"
            raise _LostError(told, final=True) from error
        return answer


class Processes:
    """Works in processes of its own, each driven by a thread; one that dies is replaced.

    What it was at is tried again in pieces of one example and one pipeline; a piece that kills
    three processes, or hangs, fails alone.
    """

    def __init__(
        self,
        pipelines: Sequence[PipelineSpec],
        workers: int,
        *,
        cache: Path | None = None,
        timeout: float | None = None,
        while_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        """Starts nothing yet.

        Args:
            pipelines: By the places that groups name.
            workers: Processes.
            cache: Where what is derived from documents is kept; None keeps nothing.
            timeout: Seconds that a call may take for each example in it; None is no limit.
            while_waiting: Called several times a second; what it raises ends the waiting.
        """
        stages = [p.stages for p in pipelines]
        self._orders = dump(Orders(stages, source_hashes_of(stages), cache, timeout))
        self._timeout, self._while_waiting = timeout, while_waiting
        self._todo: SimpleQueue[_Piece | None] = SimpleQueue()
        self._answers: SimpleQueue[tuple[_Piece | None, Any]] = SimpleQueue()
        self._closing = False
        self._workers: set[_Worker] = set()
        self._threads = [threading.Thread(target=self._drive, daemon=True) for _ in range(workers)]

    def __enter__(self) -> Processes:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing = True
        for worker in list(self._workers):
            worker.end()
        started = [thread for thread in self._threads if thread.ident]
        for _ in started:
            self._todo.put(None)
        for thread in started:
            thread.join()

    def _drive(self) -> None:
        """Hands work to one process after the other, as long as there is any."""
        worker: _Worker | None = None
        while (piece := self._todo.get()) is not None and not self._closing:
            try:
                worker = worker or self._start()
                self._answers.put((piece, worker.answer(piece, self._timeout)))
            except _LostError as lost:
                assert worker is not None
                self._workers.discard(worker)
                worker.end()
                worker = None
                self._answers.put((piece, lost))
            except Exception as error:  # raised again where the answers are awaited
                self._answers.put((None, error))

    def _start(self) -> _Worker:
        worker = _Worker()
        self._workers.add(worker)
        if self._closing:
            worker.end()
        worker.prepare(self._orders)
        return worker

    def select(self, groups: Iterable[Group]) -> Iterator[tuple[Group, dict[int, Selection]]]:
        """Yields the groups in their order, each with its selections.

        Raises:
            UserError: A stage met a mistake of the user's, or no process can be started.
        """
        arriving, pending = iter(groups), deque[_Pending]()
        while True:
            self._fill(arriving, pending)
            if not pending:
                return
            while pending[0].left:
                self._wait()
            done = pending.popleft()
            yield done.group, done.selections()

    def _fill(self, arriving: Iterator[Group], pending: deque[_Pending]) -> None:
        """Takes in groups until enough are under way."""
        while _is_little(pending):
            group = next(arriving, None)
            if group is None:
                return
            pending.append(waiting := _Pending(group))
            if group.wanted:
                self._hand_out([_Piece(waiting, tuple(range(len(group.examples))), group.wanted)])

    def _hand_out(self, pieces: Iterable[_Piece]) -> None:
        for piece in pieces:
            piece.pending.left += 1
            self._todo.put(piece)
        for thread in self._threads:
            if not thread.ident:  # not before there is anything to do
                thread.start()

    def _wait(self) -> None:
        """Takes one answer, if any comes."""
        try:
            piece, answer = self._answers.get(timeout=_LOOK)
        except Empty:
            self._while_waiting()
            return
        if isinstance(answer, OSError):
            raise UserError(
                f"a process beside this one could not start: {answer.strerror}; give fewer"
                " --workers, or raise the limit (ulimit)"
            ) from answer
        if piece is None:
            raise answer
        piece.pending.left -= 1
        if isinstance(answer, _LostError):
            self._try_again(piece, answer)
        elif isinstance(answer, UserError):
            raise answer
        else:
            document = piece.pending.group.examples[0].document
            for wanted, (found, seconds) in answer.items():
                piece.keep(wanted, [_received(document, each) for each in found], seconds)

    def _try_again(self, piece: _Piece, lost: _LostError) -> None:
        """Splits what a process was lost over, hands it out again, or gives it up."""
        piece.deaths += 1
        if piece.calls > 1:
            self._hand_out(piece.split())
        elif lost.final or piece.deaths >= _TRIES:
            piece.keep(piece.wanted[0], [ExampleError("retriever", str(lost))], 0.0)
        else:
            self._hand_out([piece])


def _is_little(pending: Collection[_Pending]) -> bool:
    characters = sum(each.characters for each in pending)
    return len(pending) <= _DOCUMENTS_AHEAD and characters <= _CHARACTERS_AHEAD


def _received(document: Document, sent: Sent | ExampleError) -> Found | ExampleError:
    if isinstance(sent, ExampleError):
        return sent
    hits, notes = sent
    return Found([Hit(document.chunk(start, end), score) for start, end, score in hits], notes)
