"""Scores against what may explain them: length, position, k, parameters swept over, cost."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, pairwise
from statistics import fmean, stdev

from leporello.analysis.comparison.tables import PipelineScores, TaskComparison
from leporello.jobs.confidence import Answers, reliability, scores_by_coverage
from leporello.report.example_index import Packed
from leporello.report.join import ExampleFacts
from leporello.report.plots import Plot, Point, Series, lines

_BINS, _IN_BIN = 8, 5  # at most so many bins, with at least so many examples each
_COVERED = 20  # points of a curve over coverage
_RANKS = 20  # at which recall is drawn
_SPAN = 100  # of a scale, low to high
_Z = 1.96  # standard errors on either side: 95 %
_BAND = "mean with 95 % band"


def curves(comparison: TaskComparison, packed: Packed, facts: ExampleFacts) -> Iterator[Plot]:
    """Yields the curves that there are data for.

    Args:
        comparison: Comparison of the pipelines on the task.
        packed: Examples of the task; one job an entry of the comparison.
        facts: Facts of what became of the examples.
    """
    for metric, score in comparison.metrics.items():
        yield from _against_lengths(metric, score, packed)
        yield from _against_positions(metric, score, packed, facts)
    yield from _recall(packed, facts)
    yield from _confidence([*comparison.metrics.items()][:1], packed)
    for metric, score in comparison.metrics.items():
        yield from _sweeps(comparison, metric, score)
        yield from _costs(comparison, metric, score)


def _against_lengths(metric: str, score: str, packed: Packed) -> Iterator[Plot]:
    lengths = [None if length is None else max(1, length) for length in packed.lengths]
    series = [
        Series(job.label, _binned(list(zip(lengths, scores[metric], strict=True))))
        for job, scores in zip(packed.jobs, packed.scores, strict=True)
    ]
    title = f"{score} against the length of the document, {packed.task}"
    yield from _drawn(title, series, "characters of the document, in bins", score, logarithmic=True)


def _against_positions(
    metric: str, score: str, packed: Packed, facts: ExampleFacts
) -> Iterator[Plot]:
    series = []
    for job, scores in zip(packed.jobs, packed.scores, strict=True):
        traced = facts.by_job.get(job.key, {})
        positions = [traced[id_].position if id_ in traced else None for id_ in packed.ids]
        percent = [None if position is None else _SPAN * position for position in positions]
        series.append(Series(job.label, _binned(list(zip(percent, scores[metric], strict=True)))))
    title = f"{score} against where the evidence stands, {packed.task}"
    yield from _drawn(title, series, "position in the document, %, in bins", score)


def _recall(packed: Packed, facts: ExampleFacts) -> Iterator[Plot]:
    series = []
    for job in packed.jobs:
        traced = facts.by_job.get(job.key, {}).values()
        recalls = [_recall_by_rank(example.gains) for example in traced if example.gold]
        ranks = enumerate(zip(*recalls, strict=True), 1)
        series.append(Series(job.label, tuple(_mean(rank, shares) for rank, shares in ranks)))
    title = f"Recall of the evidence by the first k hits, {packed.task}"
    yield from _drawn(title, series, "k", "% of the evidence's characters")


def _confidence(metrics: Sequence[tuple[str, str]], packed: Packed) -> Iterator[Plot]:
    """Yields risk against coverage, and score against confidence, by the first metric."""
    risks, bins = [], []
    for metric, _ in metrics:
        for job, scores, sure in zip(packed.jobs, packed.scores, packed.confidences, strict=True):
            pairs = zip(sure, scores[metric], strict=True)
            answers = [(c, s) for c, s in pairs if c is not None and s is not None]
            risks.append(Series(job.label, tuple(_risks(answers))))
            means = ((_SPAN * c, [s for _, s in own]) for own, c, _ in reliability(answers))
            bins.append(Series(job.label, tuple(_mean(*point) for point in means)))
    for _, score in metrics:
        shown = [line for line in risks if line.points]
        if shown:
            title = f"Risk against coverage: the surest answers first, {packed.task}"
            yield lines(title, shown, x_name="% of the answers", y_name=f"100 - {score}")
        title = f"{score} against confidence in bins, dotted where they agree, {packed.task}"
        places = [point.x for line in bins for point in line.points]
        equal = [Point(x, x, x, x) for x in (min(places), max(places))] if places else []
        yield from _drawn(title, bins, "confidence, %", score, front=equal)


def _risks(answers: Answers) -> Iterator[Point]:
    means = scores_by_coverage(answers)
    for place in range(_COVERED if means else 0):
        count = -(-len(means) * (place + 1) // _COVERED)
        risk = _SPAN - means[count - 1]
        yield Point(_SPAN * (place + 1) / _COVERED, risk, risk, risk)


def _recall_by_rank(gains: Sequence[tuple[int, float]]) -> list[float]:
    """Returns the % kept up to each rank; of a failed example 0, as the funnel counts it."""
    by_rank = dict(gains)
    shares = (by_rank.get(rank, 0.0) for rank in range(1, _RANKS + 1))
    return [_SPAN * share for share in accumulate(shares, max)]


def _drawn(
    title: str,
    series: Sequence[Series],
    x: str,
    y: str,
    *,
    logarithmic: bool = False,
    front: Sequence[Point] = (),
) -> Iterator[Plot]:
    """Yields the plot, if any series has a point."""
    if shown := [line for line in series if line.points]:
        named = f"{title}: {_BAND}"
        yield lines(named, shown, x_name=x, y_name=y, logarithmic=logarithmic, front=front)


def _binned(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[Point, ...]:
    """Returns the means of `y` in bins of equal count, each at the median of its `x`."""
    points = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    count = max(1, min(_BINS, len(points) // _IN_BIN))
    edges = [len(points) * index // count for index in range(count + 1)]
    bins = [points[start:end] for start, end in pairwise(edges) if start < end]
    means = (_mean(bin_[len(bin_) // 2][0], [y for _, y in bin_]) for bin_ in bins)
    by_x = {point.x: point for point in means}  # many examples may share one length
    return tuple(by_x[x] for x in sorted(by_x))


def _mean(x: float, values: Sequence[float]) -> Point:
    mean = fmean(values)
    error = _Z * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Point(x, mean, max(0.0, mean - error), min(max(_SPAN, mean), mean + error))


def _sweeps(comparison: TaskComparison, metric: str, score: str) -> Iterator[Plot]:
    """Yields the score against each parameter that is swept over in numbers."""
    sweeps: defaultdict[str, defaultdict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for entry in comparison.entries:
        for name, value, rest in _swept(entry):
            sweeps[name][rest].append(measured(value, entry, metric, ""))
    for name, series in sweeps.items():
        drawn = [Series(rest, ascending(points)) for rest, points in series.items()]
        shown = [line for line in drawn if len({p.x for p in line.points}) > 1]
        if shown:
            title = f"{score} against {name}, {comparison.task}: with 95 % intervals"
            yield lines(title, shown, x_name=name, y_name=score)


def _swept(entry: PipelineScores) -> Iterator[tuple[str, float, str]]:
    """Yields (parameter, value, the name without it) of a point of a sweep."""
    base, _, point = entry.label.partition("@")
    settings = [setting.partition("=") for setting in re.split(r",(?=[\w.]+=)", point) if setting]
    for name, _, value in settings:
        with suppress(ValueError):
            others = ",".join(f"{key}={one}" for key, _, one in settings if key != name)
            number = float(value)
            if math.isfinite(number):
                yield name, number, f"{base}@{others}" if others else base


def ascending(points: Sequence[Point]) -> tuple[Point, ...]:
    """Returns the points from left to right."""
    return tuple(sorted(points, key=lambda point: point.x))


def _costs(comparison: TaskComparison, metric: str, score: str) -> Iterator[Plot]:
    """Yields the score against seconds, and against tokens, where all pipelines have them."""
    kinds: list[tuple[str, Callable[[PipelineScores], float | None]]] = [
        ("seconds an example", lambda entry: entry.seconds),
        ("tokens read an example", lambda entry: entry.input_tokens / entry.examples or None),
        ("dollars", lambda entry: entry.dollars),
    ]
    for name, cost in kinds:
        prices = [cost(entry) for entry in comparison.entries]
        present = [price for price in prices if price]
        if len(present) == len(prices) > 1:
            yield _against_cost(comparison, metric, (score, name), present)


def _against_cost(
    comparison: TaskComparison, metric: str, names: tuple[str, str], prices: Sequence[float]
) -> Plot:
    points = [
        measured(p, e, metric, e.label) for p, e in zip(prices, comparison.entries, strict=True)
    ]
    best = front(points)
    series = [
        Series(f"{point.label}{' (best at its cost)' if point in best else ''}", (point,))
        for point in points
    ]
    score, cost = names
    title = (
        f"{score} against {cost}, {comparison.task}: with 95 % intervals, best at any cost dotted"
    )
    return lines(
        title, series, x_name=cost, y_name=score, joined=False, logarithmic=True, front=best
    )


def measured(x: float, entry: PipelineScores, metric: str, label: str) -> Point:
    """Returns a pipeline's score with its interval."""
    score = entry.scores[metric]
    low, high = score.interval or (score.value, score.value)
    return Point(x, score.value, low, high, label)


def front(points: Sequence[Point]) -> list[Point]:
    """Returns the Pareto front, cheapest first: points that no cheaper one reaches in score."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best
