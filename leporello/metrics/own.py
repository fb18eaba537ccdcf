"""Metrics of the user's own: two methods; all else that a metric is has defaults."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from leporello.core.environment.user_code import user_code_errors
from leporello.core.errors import UserError
from leporello.core.records import JSON, Example, Prediction, Request
from leporello.metrics.protocol import Asks, GoldError, Metric, Resampled, Statistics

if TYPE_CHECKING:
    from leporello.metrics.protocol import Numbers

_VALUE = "value"  # under which statistics of any JSON are kept, since ours are mappings
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class MetricError(UserError):
    """A metric of the user's own failed; the text says where in its file, and why."""


@dataclass(frozen=True)
class OwnMetric:
    """A metric made of `statistics(prediction, example)` and `aggregate(statistics)`.

    A number that these come to is the score of the metric's name. Of several named ones the class
    may say the `headline`, otherwise the first is it; they are called `NAME[numbers_name]`.

    Attributes:
        inner: Object of the user's class.
        parameters: Parameters that it was given, as JSON.
    """

    inner: Any
    parameters: Mapping[str, JSON]

    @cached_property
    def name(self) -> str:
        """The class's `name`, or its own in snake case."""
        own = getattr(self.inner, "name", None)
        words = _WORDS.sub("_", type(self.inner).__name__).lower()
        return own if isinstance(own, str) and own else words

    @property
    def headline(self) -> str:
        """The score of the metric's own name."""
        return self.name

    @property
    def needs_hits(self) -> bool:
        """Whether it looks at what was selected, which predictions from elsewhere do not say."""
        return bool(getattr(self.inner, "needs_hits", False))

    @cached_property
    def signature(self) -> str:
        """The class's `signature`; or its name, the hash of its file, and its parameters."""
        own = getattr(self.inner, "signature", None)
        if isinstance(own, str) and own:
            return own
        source = sha256(Path(inspect.getfile(type(self.inner))).read_bytes()).hexdigest()[:16]
        given = (f"{name}:{json.dumps(value)}" for name, value in self.parameters.items())
        return "|".join(
            [self.name, f"class:{type(self.inner).__name__}", f"source:{source}", *given]
        )

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns what the class says of an example; None where it has nothing to score against.

        Raises:
            MetricError: It fails, or says what is no JSON.
        """
        found = self._call("statistics", prediction, example)
        if found is None:
            return None
        try:  # as it is read again: tuples are lists
            return {_VALUE: json.loads(json.dumps(found, allow_nan=False))}
        except (TypeError, ValueError, RecursionError) as error:
            raise self._wrong("statistics", found, f"is no JSON: {error}") from None

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example: the class's `score`, or the aggregate of one.

        Raises:
            MetricError: It fails, or says what is no number.
        """
        if not callable(getattr(self.inner, "score", None)):
            return self.aggregate([statistics])[self.name]
        return self._number("score", self._call("score", statistics[_VALUE]))

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the scores over all examples, as the class has them.

        Raises:
            MetricError: It fails, or says what is no number.
        """
        if not statistics:
            return {}
        found = self._call("aggregate", [each[_VALUE] for each in statistics])
        if not isinstance(found, Mapping):
            return {self.name: self._number("aggregate", found)}
        headline = getattr(self.inner, "headline", next(iter(found), None))
        if headline not in found or not all(isinstance(name, str) for name in found):
            raise self._wrong("aggregate", found, f"has no number of the name {headline!r}")
        numbers = {name: self._number("aggregate", value) for name, value in found.items()}
        others = {f"{self.name}[{name}]": value for name, value in numbers.items()}
        return {self.name: numbers[headline], **others}

    def _call(self, method: str, *given: object) -> object:
        try:
            with user_code_errors(f"{type(self.inner).__name__}.{method}", GoldError):
                return getattr(self.inner, method)(*given)
        except UserError as error:  # whatever it is, it is the class's
            raise MetricError(str(error)) from None

    def _number(self, method: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            raise self._wrong(method, value, "is no finite number")
        return round(float(value), 4)

    def _wrong(self, method: str, value: object, fault: str) -> MetricError:
        """Returns the fault of a method that says what it may not."""
        code = getattr(getattr(type(self.inner), method), "__code__", None)
        place = f" ({code.co_filename}, line {code.co_firstlineno})" if code else ""
        return MetricError(
            f"{type(self.inner).__name__}.{method} returned {value!r:.80}, which {fault}{place}"
        )


# What metrics that ask a reader came to: statistics, or the error, by metric.
Verdicts: TypeAlias = "dict[str, Statistics | MetricError | None]"


def metrics_that_ask(metrics: Mapping[str, Metric]) -> dict[str, Asks]:
    """Returns the metrics that ask a reader, by name."""
    inner = {n: m.inner if isinstance(m, OwnMetric) else m for n, m in metrics.items()}
    return {name: metric for name, metric in inner.items() if isinstance(metric, Asks)}


def judgement(
    metrics: Mapping[str, Asks], prediction: Prediction, example: Example
) -> Generator[Sequence[Request], list[Any], Any]:
    """Runs metrics that ask a reader, one after the other, and returns their `Verdicts`."""
    verdicts: Verdicts = {}
    for name, metric in metrics.items():
        try:
            verdicts[name] = yield from metric.ask(prediction, example)
        except (UserError, GeneratorExit):
            raise
        except Exception as error:
            verdicts[name] = MetricError(f"{type(error).__name__}: {error}")
    return verdicts


def statistics_of(
    metrics: Mapping[str, Metric],
    prediction: Prediction,
    example: Example,
    verdicts: Verdicts | None = None,
) -> tuple[dict[str, Statistics | None], dict[str, str]]:
    """Returns an example's statistics by metric, and the faults of metrics that failed on it.

    What a metric of the user's own does wrong loses no prediction.

    Args:
        metrics: Metrics by name.
        prediction: The prediction.
        example: The example, with its gold.
        verdicts: What `judgement` returned for those that ask a reader; None if they asked none.

    Raises:
        GoldError: No prediction could be scored against such a reference.
    """
    found: dict[str, Statistics | None] = {}
    faults: dict[str, str] = {}
    for name, metric in metrics.items():
        try:
            if verdicts is None or name not in verdicts:
                found[name] = metric.statistics(prediction, example)
            elif isinstance(verdict := verdicts[name], MetricError):
                raise verdict
            else:
                found[name] = verdict
        except MetricError as error:
            found[name], faults[name] = None, str(error).partition("\n")[0]
    _put_beside(metrics, found, verdicts or {})
    return found, faults


def _put_beside(
    metrics: Mapping[str, Metric],
    found: Mapping[str, Statistics | None],
    verdicts: Verdicts,
) -> None:
    """Adds the other metrics' scores to what opinions are held against."""
    beside = [s["beside"] for s in map(found.get, verdicts) if s and "beside" in s]
    for name in [name for name in found if beside and name not in verdicts]:
        with suppress(MetricError):  # some have no score of a single example
            if statistics := found[name]:
                score = metrics[name].score(statistics)
                for scores in beside:
                    scores.setdefault(name, score)


class ByAggregate:
    """An own metric as one that sums over examples: what is summed is how often each is drawn.

    Its aggregate is then asked for each resample, which takes long where there are many examples.
    """

    MOST: int = 2_000  # examples of all pipelines

    def __init__(self, metric: OwnMetric, tables: Sequence[Sequence[Statistics]]) -> None:
        """Takes the statistics of each pipeline."""
        self._metric = metric
        self._pool = [statistics for table in tables for statistics in table]
        self._first = {id(table): place * len(table) for place, table in enumerate(tables)}

    def score(self, statistics: Statistics) -> float:
        """Returns the score of one example."""
        return self._metric.score(statistics)

    def summands(self, statistics: Sequence[Statistics]) -> Numbers:
        """Returns a column of its own for each example, shape (examples, examples of all)."""
        import numpy as np

        return np.eye(len(statistics), len(self._pool), self._first[id(statistics)])

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:  # noqa: ARG002 -- as every metric's
        """Returns the headline of each resample."""
        import numpy as np

        drawn = (np.repeat(np.arange(len(row)), np.rint(row).astype(int)) for row in sums)
        scores = (self._metric.aggregate([self._pool[i] for i in picks]) for picks in drawn)
        return np.array([score[self._metric.headline] for score in scores])


def resampled(metric: Metric, tables: Sequence[Sequence[Statistics]]) -> Resampled | None:
    """Returns a metric as one that can be resampled; None where it cannot, or would take long."""
    if not isinstance(metric, OwnMetric):
        return metric if isinstance(metric, Resampled) else None
    few = sum(map(len, tables)) <= ByAggregate.MOST
    return ByAggregate(metric, tables) if few else None
