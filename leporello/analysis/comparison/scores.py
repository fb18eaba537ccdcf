"""Computes scores of pipelines on one task, with intervals and differences to a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leporello.engine.results.finished import ExampleStatistics
from leporello.metrics import Metric, Statistics
from leporello.metrics.own import resampled

if TYPE_CHECKING:
    from leporello.analysis.comparison.significance import Numbers

_SAME = 1e-9  # scores of an example that differ by less are a tie


@dataclass(frozen=True, slots=True)
class Draws:
    """Settings of the resampling.

    Attributes:
        samples: Number of bootstrap samples, and of random exchanges.
        by_document: Whether to draw the examples of a document together, since their scores are
            not independent; a failed example without a document is drawn separately.
    """

    samples: int = 10_000
    seed: int = 0
    by_document: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between a pipeline and the baseline on the same examples."""

    value: float  # score of the pipeline minus the baseline's
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    p_bootstrap: float  # P-value of the paired bootstrap, two-sided
    p_randomisation: float  # P-value of approximate randomisation, two-sided
    p_corrected: float  # the same by Holm's method, over the tested pipelines of the task
    wins: int  # number of examples with a higher score than the baseline's
    ties: int  # number of examples with the same score
    losses: int  # number of examples with a lower score


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one pipeline by one metric."""

    value: float  # headline score of the metric, 0 to 100
    others: Mapping[str, float]  # all scores of the metric, by name
    # Percentile interval of the bootstrap, (low, high); None if nothing can be resampled: the
    # metric compares examples with each other, or documents are drawn and there is only one.
    interval: tuple[float, float] | None
    difference: Difference | None  # None for the baseline, and without an interval
    examples: int  # number of examples that the metric can score


def compared(
    rows: Sequence[Sequence[ExampleStatistics]],
    metrics: Mapping[str, Metric],
    baseline: int | None,
    draws: Draws,
) -> list[dict[str, Score]]:
    """Returns the scores of each pipeline by metric.

    `rows` has the same finished examples of each pipeline, in the same order. `baseline` is the
    index of the pipeline that the others are tested against; None tests nothing.
    """
    by_metric: dict[str, list[Score]] = {}
    for name, metric in metrics.items():
        statistics = [[example.statistics.get(name) for example in row] for row in rows]
        indices, table = scored_by_all(statistics)
        # The examples of one document are not independent.
        owners = owners_of(rows, indices) if draws.by_document else None
        by_metric[name] = scores_of(metric, table, baseline, draws, owners)
    return [{name: by_metric[name][index] for name in metrics} for index in range(len(rows))]


def scored_by_all(
    rows: Sequence[Sequence[Statistics | None]],
) -> tuple[list[int], list[list[Statistics]]]:
    """Returns the indices of examples that have statistics in all rows, and these statistics."""
    indices = [i for i, column in enumerate(zip(*rows, strict=True)) if None not in column]
    return indices, [[row[index] or {} for index in indices] for row in rows]


def scores_of(
    metric: Metric,
    table: Sequence[Sequence[Statistics]],
    baseline: int | None,
    draws: Draws,
    owners: Sequence[int] | None = None,
) -> list[Score]:
    """Returns the score of each pipeline by one metric; see `compared`.

    `owners` has the number of each example's document; None draws examples independently.
    """
    count = len(table[0])
    aggregates = [metric.aggregate(statistics) if count else {} for statistics in table]
    plain = [Score(s.get(metric.headline, 0.0), s, None, None, count) for s in aggregates]
    summed = resampled(metric, table) if count else None
    units = count if owners is None else len({*owners})
    # No interval: without sums, `aggregate` would run for each of 10,000 samples (decision 39), and
    # all samples of a single unit are the same.
    if summed is None or units == 1:
        return plain
    from leporello.analysis.comparison.significance import bootstrap, holm, interval, randomisation

    sums = [summed.summands(statistics) for statistics in table]
    options: Any = {"samples": draws.samples, "seed": draws.seed, "units": owners}
    samples = bootstrap(sums, summed.of_sums, **options)
    ends = [*map(interval, samples)]
    scores = [replace(score, interval=end) for score, end in zip(plain, ends, strict=True)]
    if baseline is None or len(sums) == 1:
        return scores
    others = [index for index in range(len(sums)) if index != baseline]
    others_sums = [sums[index] for index in others]
    p_values = randomisation(sums[baseline], others_sums, summed.of_sums, **options)
    single = [[*map(metric.score, statistics)] for statistics in table]
    for index, p, corrected in zip(others, p_values, holm(p_values), strict=True):
        gains = [s - base for s, base in zip(single[index], single[baseline], strict=True)]
        value = plain[index].value - plain[baseline].value
        differences = samples[index] - samples[baseline]
        difference = _difference(value, differences, gains, (p, corrected))
        scores[index] = replace(scores[index], difference=difference)
    return scores


def _difference(
    value: float, resampled: Numbers, gains: Sequence[float], p_values: tuple[float, float]
) -> Difference:
    from leporello.analysis.comparison.significance import interval, p_of_bootstrap

    low, high = interval(resampled)
    wins, losses = sum(g > _SAME for g in gains), sum(g < -_SAME for g in gains)
    return Difference(
        value=round(value, 4),
        low=low,
        high=high,
        p_bootstrap=p_of_bootstrap(resampled, value),
        p_randomisation=p_values[0],
        p_corrected=p_values[1],
        wins=wins,
        ties=len(gains) - wins - losses,
        losses=losses,
    )


def owners_of(rows: Sequence[Sequence[ExampleStatistics]], indices: Sequence[int]) -> list[int]:
    """Returns the number of each example's document, for the examples at these indices."""
    numbers: dict[str, int] = {}
    owners = []
    for index in indices:
        documents = (row[index].document for row in rows if row[index].document)
        key = next(documents, f"example {rows[0][index].id}")
        owners.append(numbers.setdefault(key, len(numbers)))
    return owners
