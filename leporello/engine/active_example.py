"""An example between its selection and its answer: the combiner's generator and its reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.config import Pipeline
from leporello.core.calls.budget import NO_BUDGET
from leporello.core.calls.contracts import StageError, resumption, run_combiner, sees_gold
from leporello.core.calls.stage_calls import stage_call
from leporello.core.notes import collect_notes
from leporello.core.passages import flat_read, identity, stood_for
from leporello.core.records import (
    JSON,
    Combination,
    Example,
    Hit,
    Output,
    Prediction,
    Read,
    Reply,
    Request,
    Search,
    Span,
)
from leporello.engine.answers.typed import TypedAnswer, with_choices
from leporello.engine.failures import stage_errors
from leporello.engine.requests import Admission, Allowance, checked, told
from leporello.engine.results.finished import Call
from leporello.engine.selection import Selection, select

_MOST_ROUNDS = 20_000  # an example: reading a book passage by passage takes some 5,000
_MOST_REQUESTS = 200_000  # likewise


@dataclass(eq=False)
class ActiveExample:
    """An example whose combiner has not returned yet.

    Attributes:
        number: Number of the example in its task.
        example: Example with its gold; the combiner received what it may see.
        stages: Stages of the pipeline, which answer requests that need no reading.
        hits: Hits of the retriever, best first; `Search` adds to them.
        combiner: Generator of the combiner.
        unchunked: Number of characters that are in no chunk.
        reads: Reads of the present round of the combiner.
        replies: Their outputs or errors; None where a read has none yet.
        unread: Places in `reads` of those that are read in the present step.
        step: Number of steps so far: a round is one, or several where a budget has to know the
            cost of a read before it allows the next.
        calls: Reads of earlier rounds.
        stood_for: Spans of passages that the reader saw in their place.
        notes: Notes of its stages.
        value: Return value of the combiner.
        finished: Whether the combiner has returned.
        prediction: Prediction, once it is made; later reads judge it, and count for no budget.
    """

    number: int
    example: Example
    stages: Pipeline
    hits: list[Hit]
    combiner: Generator[Sequence[Request], list[Any], JSON]
    unchunked: int
    reads: Sequence[Read] = ()
    replies: list[Reply | None] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    step: int = -1
    calls: list[Call] = field(default_factory=list)
    stood_for: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    value: JSON = None
    finished: bool = False
    prediction: Prediction | None = None
    _requests: Sequence[Request] = ()
    _round: int = 0
    _yields: int = 0
    _asked: int = 0

    def __post_init__(self) -> None:
        budget = self.stages.budget
        self._allowance = Allowance(self.stages) if budget != NO_BUDGET else None

    @classmethod
    def create(
        cls, stages: Pipeline, number: int, example: Example, selection: Selection
    ) -> ActiveExample:
        """Returns an example that is not started yet.

        Args:
            stages: Stages of its pipeline.
            number: Number of the example in its task.
            example: Example with its gold, which the combiner sees only if its class says so.
            selection: Selection for the example.
        """
        visible = example if sees_gold(stages.combiner) else example.without_gold()
        combiner = _combination(stages, visible, selection.hits)
        active = cls(number, example, stages, selection.hits, combiner, selection.unchunked)
        active.note((*example.document.notes, *selection.notes))
        return active

    @property
    def place(self) -> int:
        """Place of the first read of the present round among all reads of the example."""
        return len(self.calls)

    def judge(self, prediction: Prediction, judgement: Combination) -> None:
        """Goes on with the reads of metrics that ask about the prediction; `start` runs it.

        Args:
            prediction: Prediction that the combiner's answer has become.
            judgement: Generator whose return value is the new `value`.
        """
        self.prediction, self.combiner, self.finished = prediction, judgement, False

    def start(self) -> None:
        """Runs the combiner up to its first reads, or its return.

        Raises:
            Exception: Whatever the combiner raises.
        """
        self._run(partial(next, self.combiner))

    def send(self) -> None:
        """Sends the replies to a complete round and runs on to the next reads, or the return.

        Raises:
            ReadError: A read failed and the combiner did not catch it.
            Exception: Whatever the combiner raises.
        """
        replies = [reply for reply in self.replies if reply is not None]
        self.calls += map(Call, [self._round] * len(replies), self.reads, replies)
        asked = (request for request in self._requests if isinstance(request, Read))
        for read, reply in zip(asked, replies, strict=True):
            if isinstance(reply, Output):
                self.stood_for += stood_for(read, reply.cut)
        self._round += 1
        waiting = iter(replies)
        answers = [next(waiting) if isinstance(r, Read) else self._now(r) for r in self._requests]
        self._run(resumption(self.combiner, answers))

    def next_step(self) -> None:
        """Decides which reads without a reply are read next; a budget refuses others."""
        self.step += 1
        waiting = [index for index, reply in enumerate(self.replies) if reply is None]
        if self._allowance is None or self.prediction is not None:
            self.unread = waiting
            return
        for index in waiting:
            admission = self._allowance.ask(self.reads[index])
            if admission is Admission.READ:
                self.unread.append(index)
            elif admission is Admission.REFUSE:
                self.replies[index] = self._allowance.refusal(self.reads[index])

    def reply(self, index: int, reply: Reply, note: str = "") -> None:
        """Takes the output or error of a read.

        Args:
            index: Place in `reads`.
            reply: The output or error.
            note: Note on the example that came with it; empty if there is none.
        """
        self.replies[index] = reply
        self.unread.remove(index)
        self.note([note] if note else ())
        if self._allowance is not None and self.prediction is None:
            self._allowance.has_read(self.reads[index], reply)

    def _run(self, resume: Callable[[], Sequence[Request]]) -> None:
        name = f"{type(self.stages.combiner).__name__}.combine"
        if self.prediction:
            name = "a metric"
        with collect_notes() as notes, stage_call(name, self.example.document):
            self._advance(resume)
        self.note(notes)

    def _advance(self, resume: Callable[[], Sequence[Request]]) -> None:
        self.reads, self.replies = (), []
        while not self.reads:
            self._yields += 1
            if self._yields > _MOST_ROUNDS:
                raise StageError(f"asked {_MOST_ROUNDS:,} times, and has no answer yet")
            try:
                self._requests = checked(resume(), self.example.document, self.stages)
            except StopIteration as stop:
                self.value, self.finished = stop.value, True
                return
            self._asked += len(self._requests)
            if self._asked > _MOST_REQUESTS:
                raise StageError(f"asked for more than {_MOST_REQUESTS:,} reads and searches")
            asked = (request for request in self._requests if isinstance(request, Read))
            self.reads = [*map(flat_read, asked)]
            if not self.reads:
                answers = [self._now(request) for request in self._requests]
                resume = partial(self.combiner.send, answers)
        self.replies = [None] * len(self.reads)

    def _now(self, request: Request) -> Any:  # noqa: ANN401 -- hits or a number
        """Answers a request that needs no reading."""
        assert not isinstance(request, Read)
        if isinstance(request, Search):
            return self._search(request)
        with stage_errors("reader"):
            return told(self.stages, request)

    def _search(self, request: Search) -> tuple[Hit, ...]:
        with stage_errors("retriever"):
            example = dataclasses.replace(self.example, question=request.question)
            [selection] = select(self.stages, [example])
        known = {identity(hit.chunk) for hit in self.hits}
        new = [hit for hit in selection.hits if identity(hit.chunk) not in known][: request.new]
        self.hits += new
        self.note(selection.notes)
        return tuple(selection.hits if request.new is None else new)

    def note(self, notes: Iterable[str]) -> None:
        """Adds notes that the example does not have yet."""
        self.notes += [text for text in notes if text not in self.notes]


def _combination(stages: Pipeline, example: Example, hits: Sequence[Hit]) -> Combination:
    """Starts the combiner at its first step, not when it is made."""
    if not example.schema:
        return (yield from run_combiner(stages.combiner, example, tuple(hits)))
    example = with_choices(example)
    combination = run_combiner(stages.combiner, example, tuple(hits))
    writes = bool(getattr(stages.reader, "generates", False))
    return (yield from TypedAnswer(example, writes).combine(combination))
