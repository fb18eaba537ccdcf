"""Computes scores of pipelines on one task, with intervals and differences to a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leporello.engine.results.finished import ExampleStatistics
from leporello.metrics import Metric, Resampled, Statistics
from leporello.metrics.own import resampled

if TYPE_CHECKING:
    from leporello.analysis.comparison.significance import Numbers

_SAME = 1e-9  # scores of an example that differ by less are a tie


@dataclass(frozen=True, slots=True)
class Draws:
    """Settings of the resampling.

    Attributes:
        samples: Number of bootstrap samples, and of random exchanges.
        seed: Seed of both.
        by_document: Whether to draw the examples of a document together, since their scores are
            not independent; a failed example without a document is drawn separately.
        confidence: Confidence of the intervals, 0 to 1.
    """

    samples: int = 10_000
    seed: int = 0
    by_document: bool = False
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between a pipeline and the baseline on the same examples.

    Attributes:
        value: Score of the pipeline minus the baseline's.
        low: Lower end of the interval.
        high: Upper end of the interval.
        p_bootstrap: P-value of the paired bootstrap, two-sided.
        p_randomisation: P-value of approximate randomisation, two-sided.
        p_corrected: `p_randomisation`, corrected with Holm's method for the number of pipelines
            tested by this metric on this task.
        wins: Number of examples with a higher score than the baseline's.
        ties: Number of examples with the same score.
        losses: Number of examples with a lower score.
    """

    value: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    p_corrected: float
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one pipeline by one metric.

    Attributes:
        value: Headline score of the metric, 0 to 100.
        others: All scores of the metric, by name.
        interval: Percentile interval of the bootstrap, (low, high); None if the metric cannot be
            resampled, because it compares examples with each other.
        difference: Difference to the baseline; None for the baseline, and without an interval.
        examples: Number of examples that the metric can score.
    """

    value: float
    others: Mapping[str, float]
    interval: tuple[float, float] | None
    difference: Difference | None
    examples: int


def compared(
    rows: Sequence[Sequence[ExampleStatistics]],
    metrics: Mapping[str, Metric],
    baseline: int | None,
    draws: Draws,
) -> list[dict[str, Score]]:
    """Returns the scores of each pipeline by metric.

    Args:
        rows: The same finished examples of each pipeline, in the same order.
        metrics: Metrics by name.
        baseline: Index of the pipeline that the others are tested against; None tests nothing.
        draws: Settings of the resampling.
    """
    by_metric = {
        name: _scores(name, metric, rows, baseline, draws) for name, metric in metrics.items()
    }
    return [{name: by_metric[name][index] for name in metrics} for index in range(len(rows))]


def _scores(
    name: str,
    metric: Metric,
    rows: Sequence[Sequence[ExampleStatistics]],
    baseline: int | None,
    draws: Draws,
) -> list[Score]:
    """Returns the score of each pipeline by one metric."""
    table_of_all = [[example.statistics.get(name) for example in row] for row in rows]
    indices = [
        index
        for index, statistics in enumerate(zip(*table_of_all, strict=True))
        if None not in statistics
    ]
    table = [[row[index] or {} for index in indices] for row in table_of_all]
    # The examples of one document are not independent.
    owners = _owners(rows, indices) if draws.by_document else None
    return scores_of(metric, table, baseline, draws, owners)


def scores_of(
    metric: Metric,
    table: Sequence[Sequence[Statistics]],
    baseline: int | None,
    draws: Draws,
    owners: Sequence[int] | None = None,
) -> list[Score]:
    """Returns the score of each pipeline by one metric.

    Args:
        metric: The metric.
        table: Statistics of the same examples, for each pipeline.
        baseline: Index of the pipeline that the others are tested against; None tests nothing.
        draws: Settings of the resampling.
        owners: Number of each example's document; None draws examples independently.
    """
    aggregates, count = [metric.aggregate(statistics) for statistics in table], len(table[0])
    plain = [Score(s.get(metric.headline, 0.0), s, None, None, count) for s in aggregates]
    summed = resampled(metric, table) if count else None
    # No interval at all: without sums, `aggregate` would run once for each of 10,000 samples
    # (decision 39).
    if summed is None:
        return plain
    return _Resample(summed, table, plain, draws, owners).scores(baseline)


def _owners(rows: Sequence[Sequence[ExampleStatistics]], indices: Sequence[int]) -> list[int]:
    """Returns the document number of each example."""
    numbers: dict[str, int] = {}
    owners = []
    for index in indices:
        documents = (row[index].document for row in rows if row[index].document)
        key = next(documents, f"example {rows[0][index].id}")
        owners.append(numbers.setdefault(key, len(numbers)))
    return owners


@dataclass(frozen=True)
class _Resample:
    """Resamples the scores of all pipelines by one metric.

    Attributes:
        metric: Metric that sums over examples.
        table: Statistics of each pipeline, one entry per example.
        plain: Score of each pipeline, without intervals.
        draws: Settings of the resampling.
        owners: Number of each example's document; None draws examples independently.
    """

    metric: Resampled
    table: Sequence[Sequence[Statistics]]
    plain: Sequence[Score]
    draws: Draws
    owners: Sequence[int] | None

    def scores(self, baseline: int | None) -> list[Score]:
        """Returns the scores with intervals and differences to the baseline."""
        from leporello.analysis.comparison.significance import (
            bootstrap,
            holm,
            interval,
            randomisation,
        )

        sums = [self.metric.summands(statistics) for statistics in self.table]
        options: Any = {
            "samples": self.draws.samples, "seed": self.draws.seed, "units": self.owners,
        }  # fmt: skip
        samples = bootstrap(sums, self.metric.of_sums, **options)
        ends = [interval(numbers, self.draws.confidence) for numbers in samples]
        scores = [replace(s, interval=e) for s, e in zip(self.plain, ends, strict=True)]
        if baseline is None or len(sums) == 1:
            return scores
        compared_indices = [index for index in range(len(sums)) if index != baseline]
        compared_sums = [sums[index] for index in compared_indices]
        p_values = randomisation(sums[baseline], compared_sums, self.metric.of_sums, **options)
        for index, p, corrected in zip(compared_indices, p_values, holm(p_values), strict=True):
            resampled = samples[index] - samples[baseline]
            difference = self._difference(index, baseline, resampled, p, corrected)
            scores[index] = replace(scores[index], difference=difference)
        return scores

    def _difference(
        self, index: int, baseline: int, resampled: Numbers, p: float, corrected: float
    ) -> Difference:
        from leporello.analysis.comparison.significance import interval, p_of_bootstrap

        value = self.plain[index].value - self.plain[baseline].value
        low, high = interval(resampled, self.draws.confidence)
        gains = [
            self.metric.score(statistics) - self.metric.score(base)
            for statistics, base in zip(self.table[index], self.table[baseline], strict=True)
        ]
        wins, losses = sum(g > _SAME for g in gains), sum(g < -_SAME for g in gains)
        return Difference(
            value=round(value, 4),
            low=low,
            high=high,
            p_bootstrap=p_of_bootstrap(resampled, value),
            p_randomisation=p,
            p_corrected=corrected,
            wins=wins,
            ties=len(gains) - wins - losses,
            losses=losses,
        )
