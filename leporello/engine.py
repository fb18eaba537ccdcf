"""Examples in, finished lines of the journal out: the windows in which a reader is asked.

Combiners in flight over many examples ask for reads; their reads are pooled in windows, so that
batches are full whatever shape a combiner has. Examples are admitted in task order, and windows
are taken in an order that the journal can rebuild: what a float reader says can depend on its
batch mates, so a resumed run must make up the same batches. Neither knows where combiners and
reader are: in this process, or on other machines.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from leporello.crew import Launch, Move, Moves, Replies, Round
from leporello.flight import ReadError
from leporello.journal import Journal
from leporello.progress import Progress
from leporello.reading import Tally
from leporello.records import Output
from leporello.rows import output_row

__all__ = ["Engine", "Limits", "Reads"]

R = TypeVar("R")
R_contra = TypeVar("R_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is under way at once; part of what makes two runs byte-identical.

    Attributes:
        flights: Examples in flight at most.
        inputs: Reads in one window at most, unless the reader's class wants more `at_once`; no
            example is admitted while as many wait.
        example_timeout: Seconds that a call of a stage may take for each example in it.
    """

    flights: int = 64
    inputs: int = 32
    example_timeout: float | None = None


class Reads(Protocol[R_contra]):
    """Who reads windows.

    Attributes:
        tally: What reading came to.
    """

    tally: Tally

    @property
    def at_once(self) -> int:
        """Inputs that the reader's class wants in one window, 0 if it does not say."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """That the reader found itself; it does so now, for which it may load its model."""
        ...

    def read(self, window: Sequence[R_contra]) -> Replies:
        """Returns one reply a read.

        Raises:
            UserError: A mistake of the user's, such as a model that cannot be loaded.
        """
        ...


@dataclass
class _Waiting(Generic[R]):
    """An example that wants something read.

    Attributes:
        number: Of the example.
        order: Where its reads stand in the queue: (step, admitted after it, number).
        reads: All of this round.
        replies: That have come back, in order.
    """

    number: int
    order: tuple[int, int, int]
    reads: Sequence[R]
    replies: list[Output | ReadError] = field(default_factory=list)

    @property
    def left(self) -> int:
        return len(self.reads) - len(self.replies)


class Engine(Generic[R]):
    """Runs one pipeline over the examples of one task, which are offered to it in task order.

    Attributes:
        journal: What earlier processes left, and what this one finishes.
        pool: The reader.
        crew: Who holds the combiners in flight.
        progress: Told of everything.
        limits: How much is under way at once.
    """

    def __init__(
        self,
        journal: Journal,
        pool: Reads[R],
        crew: Moves[R],
        progress: Progress,
        limits: Limits = Limits(),
        *,
        before_step: Callable[[], None] = lambda: None,
    ) -> None:
        self.journal, self.pool, self.crew = journal, pool, crew
        self.progress, self.limits = progress, limits
        self._before_step = before_step
        self._inputs = max(limits.inputs, pool.at_once)
        self._waiting: list[_Waiting[R]] = []
        self._admitted = 0

    def offer(self, numbers: Iterable[int], launch: Launch[R]) -> None:
        """Takes in all examples on one document, reading as often as makes room for them.

        Args:
            numbers: Of the examples, in task order; those that the journal holds are passed over.
            launch: Starts one of them.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
        """
        for number in numbers:
            self._make_room()
            if number not in self.journal.done:
                self._take_in(launch(number))

    def pass_over(self, count: int) -> None:
        """Counts examples on one document that the journal holds, all of them."""
        for _ in range(count):
            self._make_room()

    def finish(self) -> None:
        """Finishes what is in flight.

        Raises:
            UserError: As `offer`.
        """
        while self._waiting:
            self._step()

    # -- admission -------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Reads until another example may be admitted, and counts it."""
        while not self._has_room():
            self._step()
        self._admitted += 1

    def _has_room(self) -> bool:
        if self._admitted < (self.journal.cursors or [0])[-1]:
            return True  # a resumed run first admits again whatever had been admitted
        reads = sum(each.left for each in self._waiting)
        return len(self._waiting) < self.limits.flights and reads < self._inputs

    def _take_in(self, move: Move[R]) -> None:
        """Queues an example that was launched where it stood before the run was left."""
        step = self.journal.admitted_before(move.number)
        order = (len(self.journal.cursors) if step is None else step, 1, move.number)
        if move.step is not None:
            order = (move.step + 1, 0, move.number)
        self._settle(move, order)

    def _settle(self, move: Move[R], order: tuple[int, int, int]) -> None:
        """Queues what an example wants read, or writes it down if it is finished."""
        if not move.line:
            waiting = _Waiting(move.number, order, move.reads, [*move.replies])
            self._waiting.append(waiting)
            return
        self.journal.finish(move.number, move.line, failed=move.failed)
        self.progress.example(failed=move.failed)

    # -- reading ---------------------------------------------------------------------------

    def _step(self) -> None:
        """Reads one window, records it, and hands complete rounds over."""
        self._before_step()
        window = self._window()
        self.progress.reading(len(window))
        replies = self.pool.read([waiting.reads[place] for waiting, place in window])
        self.progress.has_read(self.pool.tally)
        rows = [
            (waiting.number, output_row(reply))
            for (waiting, _), reply in zip(window, replies, strict=True)
        ]
        self.journal.step(self._admitted, rows)
        for (waiting, _), reply in zip(window, replies, strict=True):
            waiting.replies.append(reply)
        self._hand_over({waiting.number: waiting for waiting, _ in window}.values())

    def _hand_over(self, touched: Iterable[_Waiting[R]]) -> None:
        """Hands complete rounds over, each of which ends in a new move."""
        complete = [waiting for waiting in touched if not waiting.left]
        numbers = {waiting.number for waiting in complete}
        self._waiting = [each for each in self._waiting if each.number not in numbers]
        rounds: list[Round] = [(waiting.number, waiting.replies) for waiting in complete]
        for move in self.crew.deliver(rounds):
            self._settle(move, (len(self.journal.cursors), 0, move.number))

    def _window(self) -> list[tuple[_Waiting[R], int]]:
        """Returns the next reads in order, each as (who waits, place among its reads)."""
        waiting = (
            (each, place)
            for each in sorted(self._waiting, key=lambda each: each.order)
            for place in range(len(each.replies), len(each.reads))
        )
        return list(itertools.islice(waiting, self._inputs))
