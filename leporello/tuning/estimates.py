"""What points score over the same documents, and how far that would spread over others."""

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

_MOST = 10_000  # resamples


@dataclass(frozen=True, slots=True)
class Estimate:
    """A score, or a difference of two, as the mean of the tasks.

    Attributes:
        value: The number.
        interval: Its ends by a bootstrap over documents, (low, high), at 95 %; None where a metric
            cannot be resampled.
    """

    value: float
    interval: tuple[float, float] | None

    @property
    def row(self) -> JSON:
        """The numbers as a file holds them."""
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
        """Returns the mean of the tasks' scores, or that of one task."""
        names = [task] if task else [*measured]
        return round(fmean(self._score(name, measured) for name in names), 4)

    def of(self, measured: Measured) -> Estimate:
        """Returns a point's score with its interval."""
        from leporello.analysis.comparison.significance import interval

        drawn = self._resampled([measured], _MOST)
        return Estimate(self.score(measured), None if drawn is None else interval(drawn[0]))

    def difference(self, one: Measured, other: Measured, samples: int = _MOST) -> Estimate:
        """Returns what a point scores above another, over documents that both know."""
        from leporello.analysis.comparison.significance import interval

        both = [_shared(one, other), _shared(other, one)]
        drawn = self._resampled(both, samples)
        value = round(self.score(both[0]) - self.score(both[1]), 4)
        return Estimate(value, None if drawn is None else interval(drawn[0] - drawn[1]))

    def _score(self, task: str, measured: Measured) -> float:
        metric = self.tasks[task].metric
        known = [s for s in _statistics(metric.name, measured[task]) if s is not None]
        return metric.aggregate(known).get(metric.headline, 0.0)

    def _resampled(self, points: Sequence[Measured], samples: int) -> Numbers | None:
        """Returns the means of the tasks over resampled documents, shape (points, samples)."""
        tables = [self._of_task(name, points, samples, n) for n, name in enumerate(points[0])]
        known = [table for table in tables if table is not None]
        return sum(known[1:], known[0]) / len(known) if len(known) == len(tables) else None

    def _of_task(
        self, task: str, points: Sequence[Measured], samples: int, number: int
    ) -> Numbers | None:
        from leporello.analysis.comparison.significance import bootstrap

        metric = self.tasks[task].metric
        rows = [_statistics(metric.name, measured[task]) for measured in points]
        scored = [i for i, all_ in enumerate(zip(*rows, strict=True)) if None not in all_]
        tables: list[list[Statistics]] = [[row[i] or {} for i in scored] for row in rows]
        summed = resampled(metric, tables) if scored else None
        if summed is None:
            return None
        own = points[0][task]
        keys = [key for key in sorted(own) for _ in own[key]]
        numbers: dict[str, int] = {}  # of documents
        return bootstrap(
            [summed.summands(table) for table in tables],
            summed.of_sums,
            samples=samples,
            seed=self.seed + number,
            units=[numbers.setdefault(keys[i], len(numbers)) for i in scored],
        )


def cost(measured: Measured, unit: str) -> float:
    """Returns the mean cost of a question, each task of equal weight.

    Args:
        measured: Examples by task and document.
        unit: Unit: `characters` of the document that are read, `tokens`, or `dollars`.
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


def _shared(one: Measured, other: Measured) -> Measured:
    return {
        task: {key: rows for key, rows in found.items() if key in other[task]}
        for task, found in sorted(one.items())
    }


def _statistics(
    metric: str, found: Mapping[str, Sequence[ExampleStatistics]]
) -> list[Statistics | None]:
    return [e.statistics.get(metric) for key in sorted(found) for e in found[key]]
