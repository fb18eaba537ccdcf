"""Example whose combiner runs: the combiner's generator, its requests and its reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.config import Pipeline
from leporello.core.calls.budget import NO_BUDGET
from leporello.core.calls.contracts import StageError, resumption, run_combiner
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
from leporello.engine.failures import stage_errors
from leporello.engine.requests import QuestionBudget, checked, reader_property
from leporello.engine.results.finished import Call
from leporello.engine.selection import Selection, select
from leporello.engine.typed_answers import TypedAnswer, with_choices

# Time limits apply to single calls, so they never end a generator that yields forever.
_MOST_ROUNDS = 20_000  # per example: reading a book passage by passage takes some 5,000
_MOST_REQUESTS = 200_000  # per example


@dataclass(eq=False)
class ActiveExample:
    """An example whose combiner has not returned yet."""

    number: int  # number of the example in its task
    example: Example  # example with its references and evidence, which most combiners do not see
    stages: Pipeline  # stages of the pipeline, which answer requests without a read
    hits: list[Hit]  # hits of the retriever, best first; `Search` adds more
    combiner: Generator[Sequence[Request], list[Any], JSON]
    unchunked: int  # number of characters that are in no chunk
    reads: Sequence[Read] = ()  # reads of the current round of the combiner
    # Outputs or errors of these reads; None while a read has no reply.
    replies: list[Reply | None] = field(default_factory=list)
    # Indices in `reads` of the reads in the current step that have no reply, ascending.
    unread: dict[int, None] = field(default_factory=dict)  # a list would move all at each removal
    # Number of steps so far; a round has several if a budget must first learn a read's cost.
    step: int = -1
    calls: list[Call] = field(default_factory=list)  # reads of earlier rounds
    # Spans that the reader saw only as other text, such as a summary.
    stood_for: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    value: JSON = None
    finished: bool = False  # whether the combiner has returned
    # Prediction, once the combiner has answered. Later reads judge it, outside the budget.
    prediction: Prediction | None = None
    _requests: Sequence[Request] = ()
    _round: int = 0
    _yields: int = 0
    _request_count: int = 0

    def __post_init__(self) -> None:
        budget = self.stages.budget
        self._budget = QuestionBudget(self.stages) if budget != NO_BUDGET else None

    @classmethod
    def create(
        cls, stages: Pipeline, number: int, example: Example, selection: Selection
    ) -> ActiveExample:
        """Returns an example, with its gold, whose combiner is not started yet."""
        # Without the gold, so that a plug-in cannot use the answer by mistake.
        visible = example if stages.is_oracle else example.without_gold()
        combiner = _combination(stages, visible, selection.hits)
        active = cls(number, example, stages, selection.hits, combiner, selection.unchunked)
        active.note((*example.document.notes, *selection.notes))
        return active

    @property
    def place(self) -> int:
        """Index of the current round's first read among all reads of the example."""
        return len(self.calls)

    def judge(self, prediction: Prediction, judgement: Combination) -> None:
        """Replaces the combiner by a generator of metrics, which `start` runs."""
        self.prediction, self.combiner, self.finished = prediction, judgement, False

    def start(self) -> None:
        """Runs the combiner until its first reads or its return."""
        self._run(partial(next, self.combiner))

    def send(self) -> None:
        """Sends the replies of a complete round, and runs the combiner until its next reads."""
        replies = [reply for reply in self.replies if reply is not None]
        self.calls += map(Call, [self._round] * len(replies), self.reads, replies)
        reads = (request for request in self._requests if isinstance(request, Read))
        for read, reply in zip(reads, replies, strict=True):
            if isinstance(reply, Output):
                self.stood_for += stood_for(read, reply.cut)
        self._round += 1
        queue = iter(replies)
        answers = [next(queue) if isinstance(r, Read) else self._answer(r) for r in self._requests]
        self._run(resumption(self.combiner, answers))

    def next_step(self) -> None:
        """Chooses the reads of the next step; a read beyond the budget gets an empty output."""
        self.step += 1
        waiting = [index for index, reply in enumerate(self.replies) if reply is None]
        # Judges only score the answer, so their reads do not count (decision 47).
        if self._budget is None or self.prediction is not None:
            self.unread = dict.fromkeys(waiting)
            return
        for index in waiting:
            is_admitted = self._budget.admit(self.reads[index])
            if is_admitted:
                self.unread[index] = None
            elif is_admitted is False:
                self.replies[index] = self._budget.refusal(self.reads[index])

    def reply(self, index: int, reply: Reply, note: str = "") -> None:
        """Stores the output or error of the read at an index, and its note unless that is empty."""
        self.replies[index] = reply
        del self.unread[index]
        self.note([note] if note else ())
        if self._budget is not None and self.prediction is None:
            self._budget.charge(self.reads[index], reply)

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
            # A combiner that never returns would occupy the reader, and cost money, without an end.
            if self._yields > _MOST_ROUNDS:
                raise StageError(f"yielded {_MOST_ROUNDS:,} times without returning an answer")
            try:
                self._requests = checked(resume(), self.example.document, self.stages)
            except StopIteration as stop:
                self.value, self.finished = stop.value, True
                return
            self._request_count += len(self._requests)
            if self._request_count > _MOST_REQUESTS:
                raise StageError(f"requested more than {_MOST_REQUESTS:,} reads and searches")
            reads = (request for request in self._requests if isinstance(request, Read))
            self.reads = [*map(flat_read, reads)]
            if not self.reads:
                answers = [self._answer(request) for request in self._requests]
                resume = partial(self.combiner.send, answers)
        self.replies = [None] * len(self.reads)

    def _answer(self, request: Request) -> Any:  # noqa: ANN401 -- hits or a number
        assert not isinstance(request, Read)
        if isinstance(request, Search):
            return self._search(request)
        with stage_errors("reader"):
            return reader_property(self.stages, request)

    def _search(self, request: Search) -> tuple[Hit, ...]:
        with stage_errors("retriever"):
            example = dataclasses.replace(self.example, question=request.question)
            [selection] = select(self.stages, [example])
        earlier = {identity(hit.chunk) for hit in self.hits}
        new = [hit for hit in selection.hits if identity(hit.chunk) not in earlier][: request.new]
        self.hits += new
        self.note(selection.notes)
        return tuple(selection.hits if request.new is None else new)

    def note(self, notes: Iterable[str]) -> None:
        """Adds notes that the example does not contain yet."""
        self.notes += [text for text in notes if text not in self.notes]


def _combination(stages: Pipeline, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs the combiner; it starts at the first `next`, where its errors are handled."""
    if not example.schema:
        return (yield from run_combiner(stages.combiner, example, tuple(hits)))
    example = with_choices(example)
    combination = run_combiner(stages.combiner, example, tuple(hits))
    writes = bool(getattr(stages.reader, "generates", False))
    return (yield from TypedAnswer(example, writes).combine(combination))
