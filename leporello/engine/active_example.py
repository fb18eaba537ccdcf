"""Example whose combiner runs: its requests and reads, and then its prediction and scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from leporello.config import Pipeline
from leporello.core.calls.budget import NO_BUDGET
from leporello.core.calls.contracts import StageError, run_combiner
from leporello.core.calls.stage_calls import stage_call
from leporello.core.notes import collect_notes
from leporello.core.passages import flat_read, identity, stood_for
from leporello.core.records import (
    JSON,
    Combination,
    Example,
    Fit,
    Generates,
    Hit,
    Output,
    Prediction,
    Read,
    Reply,
    Request,
    Search,
    Span,
)
from leporello.engine.failures import ExampleError, stage_errors, time_limit
from leporello.engine.reading import BatchReaders
from leporello.engine.requests import QuestionBudget, checked, reader_property, rounds_of
from leporello.engine.results.finished import (
    Call,
    FinishedRow,
    Scored,
    empty_prediction,
    failed,
    prediction_of,
    succeeded,
)
from leporello.engine.selection import Selection, select
from leporello.engine.task_examples import Normalizer
from leporello.engine.typed_answers import TypedAnswer, with_choices
from leporello.metrics import Metric
from leporello.metrics.own import OwnMetric, Verdicts, judgement, metrics_that_ask, statistics_of

_MOST_REQUESTS = 200_000  # per example
_NO_CONFIDENCE = "the answer has no confidence, so `abstain` never withholds it"


@dataclass
class Scoring:
    """Metrics of a pipeline's examples, whose statistics are stored with each example."""

    # Readers of the pipeline, whose time limit and log apply to combiners and metrics too.
    readers: BatchReaders
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    normalise: Normalizer | None = None  # of the task

    def __post_init__(self) -> None:
        # Determined once, not per example: checks against a protocol are slow.
        self.asking = metrics_that_ask(self.metrics) if self.metrics else {}
        self._has_plug_in = any(isinstance(metric, OwnMetric) for metric in self.metrics.values())

    def statistics(
        self,
        number: int,
        prediction: Prediction,
        example: Example,
        verdicts: Verdicts | None = None,
    ) -> Scored:
        """Returns the statistics of an example; raises ExampleError if it cannot be scored."""
        if not self.metrics:
            return {}, {}
        timeout = None
        if self._has_plug_in:
            self.readers.attempts.start("metric", number)
            timeout = self.readers.limits.example_timeout
        with stage_errors("metric"), time_limit(timeout):
            return statistics_of(self.metrics, prediction, example, verdicts)


@dataclass(eq=False)
class ActiveExample:
    """An example that is not finished yet; `advance` runs it."""

    scoring: Scoring
    number: int  # number of the example in its task
    example: Example  # example with its references and evidence, which most combiners do not see
    selection: Selection | ExampleError
    reads: Sequence[Read] = ()  # reads of the current round of the combiner
    # Outputs or errors of these reads; None while a read has no reply.
    replies: list[Reply | None] = field(default_factory=list)
    # Indices in `reads` of the reads in the current step that have no reply, ascending.
    unread: dict[int, None] = field(default_factory=dict)  # a list would move all at each removal
    # Number of steps so far; a round has several if a budget must first learn a read's cost.
    step: int = -1
    calls: list[Call] = field(default_factory=list)  # reads of earlier rounds
    hits: list[Hit] = field(default_factory=list)  # best first; `Search` adds more
    # Spans that the reader saw only as other text, such as a summary.
    stood_for: list[Span] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    value: JSON = None  # value that the combiner returned
    _requests: int = 0

    def __post_init__(self) -> None:
        self.stages: Pipeline = self.scoring.readers.stages
        limited = self.stages.budget != NO_BUDGET
        self._budget = QuestionBudget(self.stages) if limited else None
        self._run = self._finished()

    @property
    def place(self) -> int:
        """Index of the current round's first read among all reads of the example."""
        return len(self.calls)

    def advance(self) -> FinishedRow | None:
        """Runs until reads wait for replies; returns the example if it is finished instead."""
        try:
            next(self._run)
        except StopIteration as stop:
            finished: FinishedRow = stop.value
            return finished
        return None

    def reply(self, index: int, reply: Reply, note: str = "") -> None:
        """Stores the output or error of the read at an index, and its note unless that is empty."""
        self.replies[index] = reply
        del self.unread[index]
        self._note([note] if note else ())
        if self._budget is not None:
            self._budget.charge(self.reads[index], reply)

    def _finished(self) -> Generator[None, None, FinishedRow]:
        """Runs the combiner, and then metrics that require reads."""
        number, example, scoring = self.number, self.example, self.scoring
        verdicts: Verdicts = {}
        try:
            if isinstance(self.selection, ExampleError):
                raise self.selection
            self.hits = self.selection.hits
            self._note((*example.document.notes, *self.selection.notes))
            name = f"{type(self.stages.combiner).__name__}.combine"
            self.value = yield from self._rounds(self._combination(), "combiner", name)
            prediction = self._prediction(self.selection.unchunked)
            if scoring.asking:
                # Judges only score the answer, so their reads do not count. They share batches and
                # store with the reads of combiners (decision 47).
                self._budget = None
                judging = judgement(scoring.asking, prediction, example)
                verdicts = yield from self._rounds(judging, "metric", "a metric")
            # Scored while the example is in memory: a later pass would read the data again, and
            # NarrativeQA has 8 GB (decision 2).
            scored = scoring.statistics(number, prediction, example, verdicts)
            with stage_errors("combiner"):  # JSON cannot represent every value
                return succeeded(number, prediction, self.calls, self.notes, scored)
        except ExampleError as error:
            failure = error
        try:
            # A failure scores like an empty answer: leaving it out would raise the mean.
            scored = scoring.statistics(number, empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score an empty prediction
            scored = {}, {}
        return failed(number, example, failure, scored)

    def _combination(self) -> Combination:
        """Runs the combiner; it starts at the first `next`, where its errors are handled."""
        # Without the gold, so that a plug-in cannot use the answer by mistake.
        example = self.example if self.stages.is_oracle else self.example.without_gold()
        if not example.schema:
            return (yield from run_combiner(self.stages.combiner, example, tuple(self.hits)))
        example = with_choices(example)
        combination = run_combiner(self.stages.combiner, example, tuple(self.hits))
        writes = bool(getattr(self.stages.reader, "generates", False))
        return (yield from TypedAnswer(example, writes).combine(combination))

    def _rounds(
        self, generator: Generator[Any, list[Any], Any], stage: str, name: str
    ) -> Generator[None, None, Any]:
        """Runs a generator of requests, and returns its value; yields while reads have no reply."""
        calling = partial(self._calling, stage, name)
        rounds, replies = rounds_of(generator, name, self._checked, self._answer, calling), None
        while True:
            try:
                requested = rounds.send(replies)
            except StopIteration as stop:
                return stop.value
            self.reads = [*map(flat_read, requested)]
            self.replies = [None] * len(self.reads)
            while self._next_step():
                yield
            replies = [reply for reply in self.replies if reply is not None]
            number = self.calls[-1].round + 1 if self.calls else 0
            self.calls += map(Call, [number] * len(replies), self.reads, replies)
            for read, reply in zip(requested, replies, strict=True):
                if isinstance(reply, Output):
                    self.stood_for += stood_for(read, reply.cut)

    @contextmanager
    def _calling(self, stage: str, name: str) -> Iterator[None]:
        self.scoring.readers.attempts.start("combiner", self.number)
        limit = time_limit(self.scoring.readers.limits.example_timeout)
        with stage_errors(stage), limit, collect_notes() as notes:
            with stage_call(name, self.example.document):
                yield
            self._note(notes)

    def _next_step(self) -> bool:
        """Chooses the reads of the next step; a read beyond the budget gets an empty output."""
        self.step += 1
        for index in [index for index, reply in enumerate(self.replies) if reply is None]:
            is_admitted = self._budget is None or self._budget.admit(self.reads[index])
            if is_admitted:
                self.unread[index] = None
            elif self._budget is not None and is_admitted is False:
                self.replies[index] = self._budget.refusal(self.reads[index])
        return bool(self.unread)

    def _checked(self, requests: object) -> Sequence[Request]:
        valid = checked(requests, self.example.document, self.stages)
        self._requests += len(valid)
        if self._requests > _MOST_REQUESTS:
            raise StageError(f"requested more than {_MOST_REQUESTS:,} reads and searches")
        return valid

    def _answer(self, request: Search | Fit | Generates) -> Any:  # noqa: ANN401 -- hits or a number
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
        self._note(selection.notes)
        return tuple(selection.hits if request.new is None else new)

    def _prediction(self, unchunked: int) -> Prediction:
        calls = ((call.read, call.reply) for call in self.calls)
        with stage_errors("combiner"):
            prediction = prediction_of(
                self.example, self.hits, calls, self.value, unchunked, stood_for=self.stood_for
            )
        if self._is_withheld(prediction):
            text = self.stages.no_answer
            return dataclasses.replace(prediction, prediction=text, abstained=True)
        if normalise := self.scoring.normalise:
            timeout = self.scoring.readers.limits.example_timeout
            with stage_errors("task"), time_limit(timeout):
                text = normalise(prediction.prediction, self.example)
                prediction = dataclasses.replace(prediction, prediction=text)
        return prediction

    def _is_withheld(self, prediction: Prediction) -> bool:
        if self.stages.abstain is None:
            return False
        if prediction.confidence is None:
            self._note([_NO_CONFIDENCE])
            return False
        return prediction.confidence < self.stages.abstain

    def _note(self, notes: Iterable[str]) -> None:
        """Adds notes that the example does not contain yet."""
        self.notes += [text for text in notes if text not in self.notes]


def first_reads(
    stages: Pipeline, example: Example, selection: Selection | ExampleError
) -> Sequence[Read]:
    """Returns the reads of a combiner's first round; raises ExampleError if it fails."""
    active = ActiveExample(Scoring(BatchReaders(stages)), 0, example, selection)
    finished = active.advance()
    if finished and (failure := finished.failure):
        raise ExampleError(failure["stage"], failure["error"], finished.traceback)
    return active.reads
