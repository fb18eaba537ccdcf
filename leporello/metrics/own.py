"""Adapts user-defined metrics, which have two methods; everything else has defaults."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import UserError
from leporello.core.records import JSON, Asking, Example, Prediction
from leporello.metrics.protocol import Asks, GoldError, Metric, Numbers, Resampled, Statistics

_VALUE = "value"  # a user's statistics may be any JSON, but Leporello stores mappings
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class MetricError(UserError):
    """A user-defined metric failed; the message contains its file, the line and the reason."""


@dataclass(frozen=True)
class OwnMetric:
    """A metric made of `statistics(prediction, example)` and `aggregate(statistics)`.

    If the aggregate is a number, it is the score with the metric's name. If it is a mapping, the
    class may choose the `headline`, by default the first number; scores are `NAME[number_name]`.
    """

    inner: Any  # object of the user's class
    parameters: Mapping[str, JSON]  # parameters of the object, as JSON

    @cached_property
    def name(self) -> str:
        """The class attribute `name`, or the class name in snake case."""
        declared = getattr(self.inner, "name", None)
        words = _WORDS.sub("_", type(self.inner).__name__).lower()
        return declared if isinstance(declared, str) and declared else words

    @property
    def headline(self) -> str:
        """Name of the score that ranks pipelines: the metric's name."""
        return self.name

    @property
    def needs_hits(self) -> bool:
        """Whether the metric needs hits, which predictions of other programs lack."""
        return bool(getattr(self.inner, "needs_hits", False))

    @cached_property
    def signature(self) -> str:
        """The class attribute `signature`, or name, hash of the class's file, and parameters."""
        declared = getattr(self.inner, "signature", None)
        if isinstance(declared, str) and declared:
            return declared
        # With the hash of its file: `compare` must not set scores of two versions side by side.
        source = sha256(Path(inspect.getfile(type(self.inner))).read_bytes()).hexdigest()[:16]
        options = (f"{name}:{json.dumps(value)}" for name, value in self.parameters.items())
        class_name = type(self.inner).__name__
        return "|".join([self.name, f"class:{class_name}", f"source:{source}", *options])

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns the class's statistics of an example; None if it cannot be scored."""
        value = self._call("statistics", prediction, example)
        if value is None:
            return None
        try:  # a round trip, so that tuples are lists as in a resumed run
            return {_VALUE: json.loads(json.dumps(value, allow_nan=False))}
        except (TypeError, ValueError, RecursionError) as error:
            raise self._fault("statistics", value, f"is not JSON: {error}") from None

    def score(self, statistics: Statistics) -> float:
        """Returns the class's `score` of one example, or its aggregate of the example."""
        if not callable(getattr(self.inner, "score", None)):
            return self.aggregate([statistics])[self.name]
        return self._number("score", self._call("score", statistics[_VALUE]))

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the scores over all examples."""
        aggregated = self._call("aggregate", [row[_VALUE] for row in statistics])
        if not isinstance(aggregated, Mapping):
            return {self.name: self._number("aggregate", aggregated)}
        headline = getattr(self.inner, "headline", next(iter(aggregated), None))
        if headline not in aggregated or not all(isinstance(name, str) for name in aggregated):
            raise self._fault("aggregate", aggregated, f"has no number with the name {headline!r}")
        numbers = {name: self._number("aggregate", value) for name, value in aggregated.items()}
        scores = {f"{self.name}[{name}]": value for name, value in numbers.items()}
        return {self.name: numbers[headline], **scores}

    def _call(self, method: str, *arguments: object) -> object:
        try:
            with user_code_errors(f"{type(self.inner).__name__}.{method}", GoldError):
                return getattr(self.inner, method)(*arguments)
        except UserError as error:  # any error of the class is the metric's
            raise MetricError(str(error)) from None

    def _number(self, method: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise self._fault(method, value, "is not a finite number")
        return round(float(value), 4)

    def _fault(self, method: str, value: object, fault: str) -> MetricError:
        """Returns the error for an invalid value that a method returned."""
        code = getattr(getattr(type(self.inner), method), "__code__", None)
        place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        return MetricError(
            f"{type(self.inner).__name__}.{method} returned {value!r:.80}, which {fault}{place}"
        )


# Statistics or error of each metric that asks a reader, by metric.
Verdicts: TypeAlias = "dict[str, Statistics | MetricError | None]"


def metrics_that_ask(metrics: Mapping[str, Metric]) -> dict[str, Asks]:
    """Returns the metrics that ask a reader, by name."""
    inner = {n: m.inner if isinstance(m, OwnMetric) else m for n, m in metrics.items()}
    return {name: metric for name, metric in inner.items() if isinstance(metric, Asks)}


def judgement(metrics: Mapping[str, Asks], prediction: Prediction, example: Example) -> Asking[Any]:
    """Runs metrics that ask a reader, one after the other, and returns their `Verdicts`."""
    verdicts: Verdicts = {}
    for name, metric in metrics.items():
        try:
            verdicts[name] = yield from metric.ask(prediction, example)
        except (UserError, GeneratorExit):
            raise
        except Exception as error:
            # The failure of a judge loses its verdict, but never the prediction (decision 47).
            verdicts[name] = MetricError(f"{type(error).__name__}: {error}")
    return verdicts


def statistics_of(
    metrics: Mapping[str, Metric],
    prediction: Prediction,
    example: Example,
    verdicts: Verdicts | None = None,
) -> tuple[dict[str, Statistics | None], dict[str, str]]:
    """Returns an example's statistics by metric, and the errors of the user's metrics that failed.

    `verdicts` are the results of `judgement` for the metrics that ask a reader; None if none was
    asked. Raises GoldError if the reference is invalid for a metric.
    """
    by_metric: dict[str, Statistics | None] = {}
    faults: dict[str, str] = {}
    for name, metric in metrics.items():
        try:
            if verdicts is None or name not in verdicts:
                by_metric[name] = metric.statistics(prediction, example)
            elif isinstance(verdict := verdicts[name], MetricError):
                raise verdict
            else:
                by_metric[name] = verdict
        except MetricError as error:
            # No score for the metric: over other examples it would be another score.
            by_metric[name], faults[name] = None, str(error).partition("\n")[0]
    if verdicts:
        _add_scores_beside(metrics, by_metric, verdicts)
    return by_metric, faults


def _add_scores_beside(
    metrics: Mapping[str, Metric], by_metric: Mapping[str, Statistics | None], verdicts: Verdicts
) -> None:
    """Copies all other metrics' scores to judges' statistics, which measure agreement with them."""
    beside = [s["beside"] for s in map(by_metric.get, verdicts) if s and "beside" in s]
    for name in [name for name in by_metric if beside and name not in verdicts]:
        with suppress(MetricError):  # some metrics have no score of a single example
            if statistics := by_metric[name]:
                score = metrics[name].score(statistics)
                for scores in beside:
                    scores.setdefault(name, score)


class ByAggregate:
    """Resamples a user-defined metric by its `aggregate`, which runs once per resample and is slow.

    The sums count how often each example is drawn.
    """

    # No sums of such a metric are known, so each resample is a list of examples (decision 39).
    MOST_EXAMPLES: int = 2_000  # of all pipelines together

    def __init__(self, metric: OwnMetric, tables: Sequence[Sequence[Statistics]]) -> None:
        self._metric = metric
        self._pool = [statistics for table in tables for statistics in table]
        self._first_column = {id(table): index * len(table) for index, table in enumerate(tables)}

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns rows with a 1 in each example's column, shape (examples, all examples)."""
        import numpy as np

        return np.eye(len(statistics), len(self._pool), self._first_column[id(statistics)])

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- required by the protocol
        """Returns the headline of each resample."""
        import numpy as np

        samples = (np.repeat(np.arange(len(row)), np.rint(row).astype(int)) for row in sums)
        scores = (self._metric.aggregate([self._pool[i] for i in indices]) for indices in samples)
        return np.array([score[self._metric.headline] for score in scores])


def resampled(metric: Metric, tables: Sequence[Sequence[Statistics]]) -> Resampled | None:
    """Returns a metric in a form that can be resampled; None if impossible, or too slow."""
    if not isinstance(metric, OwnMetric):
        return metric if isinstance(metric, Resampled) else None
    is_fast = sum(map(len, tables)) <= ByAggregate.MOST_EXAMPLES
    return ByAggregate(metric, tables) if is_fast else None
