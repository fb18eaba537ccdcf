"""Runs the combiners of a pipeline: starts examples, sends outputs, scores answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from leporello.core.records import Example, Prediction
from leporello.engine.active_example import ActiveExample
from leporello.engine.failures import TRIES, ExampleError, stage_errors, time_limit
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import (
    FinishedExample,
    Scored,
    empty_prediction,
    prediction_of,
)
from leporello.engine.selection import Selection
from leporello.engine.task_examples import Normalizer
from leporello.metrics import Metric
from leporello.metrics.own import OwnMetric, Verdicts, judgement, metrics_that_ask, statistics_of

_NO_CONFIDENCE = "the answer has no confidence, so `abstain` never withholds it"


@dataclass
class CombinerRunner:
    """Runs combiners, and turns their answers into predictions."""

    readers: (
        BatchReaders  # readers of the pipeline, whose time limit and log apply to combiners too
    )
    metrics: Mapping[str, Metric]  # see `Rounds`
    normalise: Normalizer | None

    def __post_init__(self) -> None:
        self.stages, self.attempts = self.readers.stages, self.readers.attempts
        self.timeout = self.readers.timeout
        # Determined once, not per example: checks against a protocol are slow.
        self._asking_metrics = metrics_that_ask(self.metrics) if self.metrics else {}
        self._has_plug_in = any(isinstance(metric, OwnMetric) for metric in self.metrics.values())

    def start(
        self, number: int, example: Example, selection: Selection | ExampleError
    ) -> ActiveExample | FinishedExample:
        """Starts an example, and returns it waiting for reads or finished."""
        if isinstance(selection, ExampleError):
            return self._failed(number, example, selection)
        active = ActiveExample.create(self.stages, number, example, selection)
        return self._advance(active, active.start)

    def resume(self, active: ActiveExample) -> ActiveExample | FinishedExample:
        """Resumes the example, whose step is complete."""
        active.next_step()
        if active.unread:
            return active
        return self._advance(active, active.send)

    def _advance(
        self, active: ActiveExample, resume: Callable[[], None]
    ) -> ActiveExample | FinishedExample:
        """Runs a combiner until its next reads, its return or its failure."""
        try:
            while not active.unread:
                if self.attempts.begin("combine", active.number) >= TRIES:
                    error = ExampleError("combiner", self.attempts.cause)
                    return self._failed(active.number, active.example, error)
                stage = "metric" if active.prediction else "combiner"
                with stage_errors(stage), time_limit(self.timeout):
                    resume()
                if active.finished and active.prediction is None:
                    self._judge(active)
                if active.finished:
                    return self._finished(active)
                active.next_step()
                resume = active.send
        except ExampleError as error:
            return self._failed(active.number, active.example, error)
        return active

    def _judge(self, active: ActiveExample) -> None:
        """Sets the prediction, and starts metrics that require reads."""
        prediction = active.prediction = self._prediction(active)
        # A judge's reads share batches and store with the reads of combiners (decision 47).
        if not self._asking_metrics:
            active.value = {}
            return
        active.judge(prediction, judgement(self._asking_metrics, prediction, active.example))
        with stage_errors("metric"), time_limit(self.timeout):
            active.start()

    def _prediction(self, active: ActiveExample) -> Prediction:
        with stage_errors("combiner"):
            prediction = prediction_of(
                active.example,
                active.hits,
                ((call.read, call.reply) for call in active.calls),
                active.value,
                active.unchunked,
                stood_for=active.stood_for,
            )
        if self._withheld(prediction, active):
            text = self.stages.no_answer
            return dataclasses.replace(prediction, prediction=text, abstained=True)
        if self.normalise:
            with stage_errors("task"), time_limit(self.timeout):
                text = self.normalise(prediction.prediction, active.example)
                prediction = dataclasses.replace(prediction, prediction=text)
        return prediction

    def _withheld(self, prediction: Prediction, active: ActiveExample) -> bool:
        if self.stages.abstain is None:
            return False
        if prediction.confidence is None:
            active.note([_NO_CONFIDENCE])
            return False
        return prediction.confidence < self.stages.abstain

    def _finished(self, active: ActiveExample) -> FinishedExample:
        """Scores the prediction; an example that JSON cannot represent fails."""
        prediction, verdicts = active.prediction, cast("Verdicts", active.value)
        assert prediction is not None
        number, calls, notes = active.number, active.calls, active.notes
        # Scored while the example is in memory: a later pass would read the data again, and
        # NarrativeQA has 8 GB (decision 2).
        scored = self._statistics(number, prediction, active.example, verdicts)
        with stage_errors("combiner"):
            return FinishedExample.succeeded(number, prediction, calls, notes, scored)

    def _statistics(
        self,
        number: int,
        prediction: Prediction,
        example: Example,
        verdicts: Verdicts | None = None,
    ) -> Scored:
        if not self.metrics:
            return {}, {}
        if self._has_plug_in and self.attempts.begin("metric", number) >= TRIES:
            raise ExampleError("metric", self.attempts.cause)
        with stage_errors("metric"), time_limit(self.timeout if self._has_plug_in else None):
            return statistics_of(self.metrics, prediction, example, verdicts)

    def _failed(self, number: int, example: Example, error: ExampleError) -> FinishedExample:
        try:
            # A failure scores like an empty answer: leaving it out would raise the mean.
            scored = self._statistics(number, empty_prediction(example), example)
        except ExampleError:  # a metric that cannot score an empty prediction
            scored = {}, {}
        return FinishedExample.failed(number, example, error, scored)
