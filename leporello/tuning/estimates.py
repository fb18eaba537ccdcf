"""Scores of points over the same documents, with confidence intervals over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from leporello.core.records import JSON
from leporello.engine.results.finished import ExampleStatistics
from leporello.metrics import Statistics
from leporello.metrics.own import resampled
from leporello.tuning.documents import TunedTask
from leporello.tuning.evaluation import Measured

if TYPE_CHECKING:
    from leporello.analysis.comparison.significance import Numbers

_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Score, or difference of two scores, as the mean of the tasks.

    Attributes:
        value: Score or difference.
        interval: 95 % bootstrap interval over documents, (low, high); None if a metric cannot be
            resampled.
    """

    value: float
    interval: tuple[float, float] | None

    @property
    def row(self) -> JSON:
        """The numbers as JSON."""
        return {"value": self.value, "interval": [*self.interval] if self.interval else None}


@dataclass(frozen=True)
class Estimates:
    """Compares points on tasks of equal weight.

    Attributes:
        tasks: Tasks by name.
        seed: Seed of the resampling.
    """

    tasks: Mapping[str, TunedTask]
    seed: int = 0

    def score(self, measured: Measured, task: str = "") -> float:
        """Returns the mean of the tasks' scores, or the score of one task."""
        names = [task] if task else [*measured]
        return round(fmean(self._score(name, measured) for name in names), 4)

    def of(self, measured: Measured) -> Estimate:
        """Returns a point's score with its interval."""
        from leporello.analysis.comparison.significance import interval

        scores = self._resampled([measured], _RESAMPLES)
        return Estimate(self.score(measured), None if scores is None else interval(scores[0]))

    def difference(
        self, point: Measured, baseline: Measured, samples: int = _RESAMPLES
    ) -> Estimate:
        """Returns the score of a point minus that of a baseline, over their shared documents."""
        from leporello.analysis.comparison.significance import interval

        both = [_shared(point, baseline), _shared(baseline, point)]
        scores = self._resampled(both, samples)
        value = round(self.score(both[0]) - self.score(both[1]), 4)
        if scores is None:
            return Estimate(value, None)
        return Estimate(value, interval(scores[0] - scores[1]))

    def _score(self, task: str, measured: Measured) -> float:
        metric = self.tasks[task].metric
        statistics = [s for s in _statistics(metric.name, measured[task]) if s is not None]
        return metric.aggregate(statistics).get(metric.headline, 0.0)

    def _resampled(self, points: Sequence[Measured], samples: int) -> Numbers | None:
        """Returns mean scores over resampled documents, of shape (points, samples)."""
        numbered = enumerate(points[0])
        tables = [self._resampled_task(name, points, samples, n) for n, name in numbered]
        valid = [table for table in tables if table is not None]
        return sum(valid[1:], valid[0]) / len(valid) if len(valid) == len(tables) else None

    def _resampled_task(
        self, task: str, points: Sequence[Measured], samples: int, number: int
    ) -> Numbers | None:
        from leporello.analysis.comparison.significance import bootstrap

        metric = self.tasks[task].metric
        rows = [_statistics(metric.name, measured[task]) for measured in points]
        scored = [i for i, column in enumerate(zip(*rows, strict=True)) if None not in column]
        tables: list[list[Statistics]] = [[row[i] or {} for i in scored] for row in rows]
        summed = resampled(metric, tables) if scored else None
        if summed is None:
            return None
        documents = points[0][task]
        keys = [key for key in sorted(documents) for _ in documents[key]]
        numbers: dict[str, int] = {}  # of documents
        return bootstrap(
            [summed.summands(table) for table in tables],
            summed.of_sums,
            samples=samples,
            seed=self.seed + number,
            units=[numbers.setdefault(keys[i], len(numbers)) for i in scored],
        )


def cost(measured: Measured, unit: str) -> float:
    """Returns the mean cost per question; all tasks have equal weight.

    Args:
        measured: Examples by task and document.
        unit: `characters` of the document that are read, `tokens`, or `dollars`.
    """
    return fmean(
        fmean(_cost(e, unit) for rows in task.values() for e in rows) for task in measured.values()
    )


def _cost(example: ExampleStatistics, unit: str) -> float:
    if unit == "dollars":
        return example.dollars or 0.0
    if unit == "characters":
        return example.coverage.get("read", 0)
    return example.input_tokens + example.output_tokens


def _shared(measured: Measured, reference: Measured) -> Measured:
    return {
        task: {key: rows for key, rows in documents.items() if key in reference[task]}
        for task, documents in sorted(measured.items())
    }


def _statistics(
    metric: str, documents: Mapping[str, Sequence[ExampleStatistics]]
) -> list[Statistics | None]:
    return [e.statistics.get(metric) for key in sorted(documents) for e in documents[key]]
