"""Examples in, finished lines of the journal out: the windows in which a reader is asked.

Combiners that are active over many examples ask for reads; their reads are pooled in windows, so
that batches are full whatever shape a combiner has. Examples are admitted in the shard's order, and
windows are taken in an order that the journal can rebuild: what a float reader says can depend on
its batch mates, so a resumed shard must make up the same batches.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from leporello.core.records import Example, Output, Read
from leporello.engine.allowance import Admission, Allowance
from leporello.engine.attempts import ALONE, TRIES, Attempts
from leporello.engine.combining import ActiveCombiners, Advance
from leporello.engine.failures import ExampleError, ReadError
from leporello.engine.journal.journal import Journal
from leporello.engine.journal.serialization import Reply
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener
from leporello.engine.reading import WindowReader, WindowReaders
from leporello.engine.selection import Selection


@dataclass
class _PendingReads:
    """An example that waits for reads.

    Attributes:
        advance: State of the example, with the reads that it waits for.
        order: Place of its reads in the queue: (step, admitted after it, number).
        replies: Replies that have come back, by their place in the round.
    """

    advance: Advance
    order: tuple[int, int, int]
    replies: dict[int, Reply]

    @property
    def number(self) -> int:
        return self.advance.number

    @property
    def left(self) -> int:
        return len(self.advance.reads) - len(self.replies)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """One read that waits for its window: whose it is, and its place among the round's."""

    pending: _PendingReads
    index: int

    @property
    def read(self) -> Read:
        return self.pending.advance.reads[self.index]

    @property
    def place(self) -> int:
        """Place of the read among all of its example."""
        return self.pending.advance.place + self.index


class Engine:
    """Runs one pipeline over the examples of one shard, which are added in the shard's order.

    Attributes:
        journal: Journal of the pipeline on the shard.
        readers: Readers of windows by role.
        combiners: Combiners under way.
        limits: Limits of what is under way at once.
        listener: Listener that is told of everything.
        attempts: Record of what is begun.
    """

    def __init__(
        self,
        journal: Journal,
        readers: WindowReaders,
        combiners: ActiveCombiners,
        limits: Limits,
        listener: Listener,
    ) -> None:
        self.journal, self.readers, self.combiners = journal, readers, combiners
        self.limits, self.listener = limits, listener
        self.attempts: Attempts = combiners.attempts
        self._window_size = readers.answering.window(limits.window)
        self._max_active = limits.max_active
        if readers.answering.schedules_itself:
            self._max_active = sys.maxsize
        self._pending: list[_PendingReads] = []
        self._allowances: dict[int, Allowance] = {}
        self._admitted = 0

    def add_document(
        self, first: int, examples: Sequence[Example], selected: Sequence[Selection | ExampleError]
    ) -> None:
        """Takes in all examples on one document, reading as often as makes room for them.

        Args:
            first: Number of the first in the shard; those that the journal holds are skipped.
            examples: Examples in the shard's order.
            selected: Selection for each, or why there is none.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
        """
        for number, example, selection in zip(
            itertools.count(first), examples, selected, strict=False
        ):
            self._make_room()
            if number not in self.journal.done:
                recorded = self.journal.recorded(number)
                self._admit(self.combiners.start(number, example, selection, recorded))

    def skip(self, count: int) -> None:
        """Counts examples on one document that the journal holds, all of them."""
        for _ in range(count):
            self._make_room()

    def finish(self) -> None:
        """Finishes what is active.

        Raises:
            UserError: As `add_document`.
        """
        while self._pending:
            self._step()

    # -- admission -------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Reads until another example may be admitted, and counts it."""
        while not self._has_room():
            self._step()
        self._admitted += 1

    def _has_room(self) -> bool:
        if self._admitted < (self.journal.cursors or [0])[-1]:
            return True  # a resumed shard first admits again whatever had been admitted
        if len(self._pending) >= self._max_active:
            return False
        return sum(pending.left for pending in self._pending) < self._window_size

    def _admit(self, advance: Advance) -> None:
        """Queues an example that was started where it stood before the shard was left."""
        step = self.journal.admitted_before(advance.number)
        # Examples that go on (0) come before those admitted after the same step (1), killed or not.
        order = (len(self.journal.cursors) if step is None else step, 1, advance.number)
        if advance.step is not None:
            order = (advance.step + 1, 0, advance.number)
        self._queue(advance, order)

    def _queue(self, advance: Advance, order: tuple[int, int, int]) -> None:
        """Queues what an example wants read, or writes it down if it is finished."""
        if not advance.line:
            self._pending.append(_PendingReads(advance, order, {**advance.replies}))
            return
        self._allowances.pop(advance.number, None)
        self.journal.finish(advance.number, advance.line, failed=advance.failed)
        self.listener.example(failed=advance.failed)

    # -- reading ---------------------------------------------------------------------------

    def _step(self) -> None:
        """Reads one window, records it, and hands complete rounds over."""
        self.listener.before_step()
        reader, window, refused = self._window()
        self.listener.reading(len(window))
        replies = self._read(reader, window)
        self.listener.has_read(reader.statistics)
        window += refused
        replies += [self._allowance(each.pending).refusal(each.read) for each in refused]
        # Before any combiner is sent them: a resumed shard replays what was said (decision 3).
        self.journal.step(
            self._admitted,
            [
                (waiting.pending.number, waiting.place, waiting.read, reply)
                for waiting, reply in zip(window, replies, strict=True)
            ],
            {window[place].pending.number: note for place, note in reader.cured.items()},
        )
        self.journal.keep_sizes(self.readers.sizes)
        for waiting, reply in zip(window, replies, strict=True):
            waiting.pending.replies[waiting.index] = reply
            if waiting.pending.number in self._allowances and not waiting.pending.advance.judges:
                self._allowances[waiting.pending.number].has_read(waiting.read, reply)
        self._hand_over({waiting.pending.number: waiting.pending for waiting in window}.values())

    def _read(self, reader: WindowReader, window: Sequence[_Waiting]) -> list[Reply]:
        """Reads a window; how long it took counts where the budget has seconds."""
        if not window:
            return []
        began = time.monotonic()
        replies = self._read_window(reader, window)
        if self.combiners.stages.budget.seconds is None:
            return replies
        each = (time.monotonic() - began) / len(window)
        return [replace(r, seconds=each) if isinstance(r, Output) else r for r in replies]

    def _read_window(self, reader: WindowReader, window: Sequence[_Waiting]) -> list[Reply]:
        """Reads a window; one that has killed its worker, read by read."""
        deaths = self.attempts.begin("window", len(self.journal.cursors))
        if deaths < TRIES:
            return reader.read([waiting.read for waiting in window])
        return [self._read_alone(reader, waiting) for waiting in window]

    def _read_alone(self, reader: WindowReader, waiting: _Waiting) -> Reply:
        deaths = self.attempts.begin("read", waiting.pending.number, waiting.place)
        if deaths >= ALONE:
            return ReadError(self.attempts.cause)
        return reader.read([waiting.read])[0]

    def _hand_over(self, touched: Iterable[_PendingReads]) -> None:
        """Hands complete rounds over, each of which ends in another advance."""
        complete = [pending for pending in touched if not pending.left]
        numbers = {pending.number for pending in complete}
        self._pending = [p for p in self._pending if p.number not in numbers]
        for pending in complete:
            replies = [reply for _, reply in sorted(pending.replies.items())]
            advance = self.combiners.send(pending.number, replies)
            self._queue(advance, (len(self.journal.cursors), 0, advance.number))

    def _window(self) -> tuple[WindowReader, list[_Waiting], list[_Waiting]]:
        """Returns who reads next, the reads, and those that a budget has no room for.

        It is the reader for which most wait; its reads are in order.
        """
        queues: dict[int, list[_Waiting]] = {}
        for pending in sorted(self._pending, key=lambda p: p.order):
            for index, read in enumerate(pending.advance.reads):
                if index not in pending.replies:
                    reader = self.readers.of(read.role)
                    queues.setdefault(id(reader), []).append(_Waiting(pending, index))
        longest = max(queues.values(), key=len)  # of equally long ones that of the oldest read
        reader = self.readers.of(longest[0].read.role)
        size = reader.window(self.limits.window)
        if not self.combiners.stages.budget:
            return reader, longest[:size], []
        return reader, *self._affordable(longest, size)

    # -- budgets ---------------------------------------------------------------------------

    def _affordable(
        self, waiting: Sequence[_Waiting], size: int
    ) -> tuple[list[_Waiting], list[_Waiting]]:
        """Returns which of the next reads are read now, and which never."""
        window: list[_Waiting] = []
        refused: list[_Waiting] = []
        for each in waiting:
            free = each.pending.advance.judges
            admission = Admission.READ if free else self._allowance(each.pending).ask(each.read)
            if admission is Admission.READ:
                window.append(each)
            elif admission is Admission.REFUSE:
                refused.append(each)
            if len(window) == size:
                break
        return window, refused

    def _allowance(self, pending: _PendingReads) -> Allowance:
        if pending.number not in self._allowances:
            stages = self.combiners.stages
            said = [(pending.advance.reads[n], reply) for n, reply in pending.replies.items()]
            calls = [*self.combiners.calls(pending.number), *said]
            self._allowances[pending.number] = Allowance(stages.budget, stages, calls)
        return self._allowances[pending.number]
