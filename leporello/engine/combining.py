"""The combiners of one pipeline on one shard that are under way."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from leporello.config import Pipeline
from leporello.core.records import Example, Prediction, Read
from leporello.engine.active_example import ActiveExample
from leporello.engine.attempts import TRIES, Attempts
from leporello.engine.failures import ExampleError, stage_errors
from leporello.engine.journal.journal import RecordedExample
from leporello.engine.journal.rows import FinishedRow, encode
from leporello.engine.journal.serialization import (
    Reply,
    empty_prediction,
    failure_row,
    prediction_of,
    prediction_row,
    reads_to_columns,
    reply_of,
)
from leporello.engine.selection import Selection
from leporello.engine.task_examples import Normalizer
from leporello.engine.time_limit import time_limit
from leporello.metrics import Metric, Statistics
from leporello.metrics.own import OwnMetric, Verdicts, judgement, statistics_of


@dataclass(frozen=True, slots=True)
class Advance:
    """How far an example has come: it wants something read, or is finished.

    Attributes:
        number: Number of the example in its shard.
        reads: Reads that it waits for; none once it is finished.
        place: Place of the first of them among all reads of the example.
        replies: Replies by their place among `reads`, as far as the journal holds them.
        step: Number of the last journal step that completed a round of it; None if none did.
        line: Line for the journal, once it is finished.
        failed: Whether that tells of a failure.
        judges: Whether its reads are about the prediction, and count for no budget.
    """

    number: int
    reads: Sequence[Read] = ()
    place: int = 0
    replies: Mapping[int, Reply] = field(default_factory=dict)
    step: int | None = None
    line: bytes = b""
    failed: bool = False
    judges: bool = False


@dataclass
class ActiveCombiners:
    """Holds the combiners under way.

    Attributes:
        stages: Stages of the pipeline; chunker and retriever are asked only for what combiners
            search.
        metrics: Metrics whose statistics are kept with each example.
        normalise: Normaliser of the task.
        timeout: Seconds that a call of a combiner may take; None is no limit.
        attempts: Record of what is begun.
    """

    stages: Pipeline
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    normalise: Normalizer | None = None
    timeout: float | None = None
    attempts: Attempts = field(default_factory=Attempts)
    _active: dict[int, ActiveExample] = field(default_factory=dict)

    def start(
        self,
        number: int,
        example: Example,
        selection: Selection | ExampleError,
        recorded: Sequence[RecordedExample] = (),
    ) -> Advance:
        """Starts an example, and goes as far as the journal's recorded outputs reach.

        Raises:
            UserError: A mistake of the user's.
        """
        if isinstance(selection, ExampleError):
            return self._failed(number, example, selection)
        active = ActiveExample.create(self.stages, number, example, selection)
        self._active[number] = active
        advance, step = self._advance(active, active.start), None
        if not recorded:
            return advance
        replies: dict[int, Reply] = {}
        for record in recorded:
            if advance.line:  # it failed this time, by no fault of the reader
                return advance
            index = record.place - advance.place
            replies[index] = reply_of(record.output, advance.reads[index])
            if len(replies) == len(advance.reads):
                advance, step = self.send(number, [*_in_order(replies)]), record.step
                replies = {}
        return dataclasses.replace(advance, replies=replies, step=step)

    def calls(self, number: int) -> list[tuple[Read, Reply]]:
        """Returns the reads of an active example's earlier rounds, each with what came of it."""
        return [(call.read, call.reply) for call in self._active[number].calls]

    def send(self, number: int, replies: Sequence[Reply]) -> Advance:
        """Hands the replies to a complete round over.

        Raises:
            UserError: A mistake of the user's.
        """
        active = self._active[number]
        return self._advance(active, lambda: active.send(replies))

    def _advance(self, active: ActiveExample, go_on: Callable[[], None]) -> Advance:
        """Lets a combiner go on; it may return by it, or fail alone."""
        try:
            if self.attempts.begin("combine", active.number) >= TRIES:
                error = ExampleError("combiner", self.attempts.cause)
                return self._failed(active.number, active.example, error)
            stage = "metric" if active.prediction else "combiner"
            with stage_errors(stage), time_limit(self.timeout):
                go_on()
            if active.finished and not active.prediction:
                self._judge(active)
            if not active.finished:
                judges = active.prediction is not None
                return Advance(active.number, active.reads, len(active.calls), judges=judges)
            line = self._line(active)
        except ExampleError as error:
            return self._failed(active.number, active.example, error)
        del self._active[active.number]
        return Advance(active.number, line=line)

    def _judge(self, active: ActiveExample) -> None:
        """Makes the prediction, and has metrics that ask a reader begin."""
        prediction = self._prediction(active)
        active.judge(prediction, judgement(self.metrics, prediction, active.example))
        with stage_errors("metric"), time_limit(self.timeout):
            active.start()

    def _prediction(self, active: ActiveExample) -> Prediction:
        with stage_errors("combiner"):
            calls = ((call.read, call.reply) for call in active.calls)
            prediction = prediction_of(
                active.example,
                active.hits,
                calls,
                active.value,
                active.unchunked,
                stood_for=active.stood_for,
            )
        if self.normalise:
            with stage_errors("task"):
                text = self.normalise(prediction.prediction, active.example)
                prediction = dataclasses.replace(prediction, prediction=text)
        return prediction

    def _line(self, active: ActiveExample) -> bytes:
        """Returns what the journal says of a finished example; what cannot be said fails it."""
        prediction, verdicts = active.prediction, active.value
        assert prediction is not None
        statistics, faults = self._statistics(
            active.number, prediction, active.example, cast("Verdicts", verdicts)
        )
        with stage_errors("combiner"):
            return encode(
                FinishedRow(
                    done=active.number,
                    prediction=prediction_row(prediction),
                    reads=reads_to_columns([(call.round, call.read) for call in active.calls]),
                    notes=active.notes,
                    statistics=statistics,
                    faults=faults or None,
                )
            )

    def _statistics(
        self,
        number: int,
        prediction: Prediction,
        example: Example,
        verdicts: Verdicts | None = None,
    ) -> tuple[dict[str, Statistics | None], dict[str, str]]:
        """Returns what metrics say, and their faults; ours may start a program, and take long."""
        own = any(isinstance(metric, OwnMetric) for metric in self.metrics.values())
        if own and self.attempts.begin("metric", number) >= TRIES:
            raise ExampleError("metric", self.attempts.cause)
        with stage_errors("metric"), time_limit(self.timeout if own else None):
            return statistics_of(self.metrics, prediction, example, verdicts)

    def _failed(self, number: int, example: Example, error: ExampleError) -> Advance:
        self._active.pop(number, None)
        try:
            statistics, faults = self._statistics(number, empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score even this
            statistics, faults = {}, {}
        failure = failure_row(example, error)
        row = FinishedRow(number, statistics, failure=failure, faults=faults or None)
        return Advance(number, line=encode(row), failed=True)


def _in_order(replies: Mapping[int, Reply]) -> Sequence[Reply]:
    return [replies[index] for index in range(len(replies))]
