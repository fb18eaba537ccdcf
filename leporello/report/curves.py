"""Plots scores against length, position, k, confidence, swept parameters and cost."""

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

_BINS, _IN_BIN = 8, 5  # maximum number of bins, minimum number of examples in each
_COVERED = 20  # points of a curve over coverage
_RANKS = 20  # ranks of the recall curve
_SPAN = 100  # scores and shares are drawn from 0 to 100
_Z = 1.96  # standard errors on either side of a 95 % band
_BAND = "mean with 95 % band"


def curves(comparison: TaskComparison, packed: Packed, facts: ExampleFacts) -> Iterator[Plot]:
    """Yields all curves that have data.

    Args:
        comparison: Comparison of the pipelines on the task.
        packed: Examples of the task; its jobs are the entries of the comparison.
        facts: Traces of the examples.
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
    yield from _plot(title, series, "characters of the document, in bins", score, logarithmic=True)


def _against_positions(
    metric: str, score: str, packed: Packed, facts: ExampleFacts
) -> Iterator[Plot]:
    series = []
    for job, scores in zip(packed.jobs, packed.scores, strict=True):
        traces = facts.by_job.get(job.key, {})
        positions = [traces[id_].position if id_ in traces else None for id_ in packed.ids]
        percent = [None if position is None else _SPAN * position for position in positions]
        series.append(Series(job.label, _binned(list(zip(percent, scores[metric], strict=True)))))
    title = f"{score} against the position of the evidence, {packed.task}"
    yield from _plot(title, series, "position in the document, %, in bins", score)


def _recall(packed: Packed, facts: ExampleFacts) -> Iterator[Plot]:
    series = []
    for job in packed.jobs:
        traces = facts.by_job.get(job.key, {}).values()
        recalls = [_recall_by_rank(example.gains) for example in traces if example.gold]
        ranks = enumerate(zip(*recalls, strict=True), 1)
        series.append(Series(job.label, tuple(_mean(rank, shares) for rank, shares in ranks)))
    title = f"Recall of the evidence by the first k hits, {packed.task}"
    yield from _plot(title, series, "k", "% of the evidence's characters")


def _confidence(metrics: Sequence[tuple[str, str]], packed: Packed) -> Iterator[Plot]:
    """Yields risk against coverage, and score against confidence."""
    risks, bins = [], []
    for metric, _ in metrics:
        columns = zip(packed.jobs, packed.scores, packed.confidences, strict=True)
        for job, scores, confidences in columns:
            pairs = zip(confidences, scores[metric], strict=True)
            answers = [(c, s) for c, s in pairs if c is not None and s is not None]
            risks.append(Series(job.label, tuple(_risks(answers))))
            means = ((_SPAN * c, [s for _, s in pairs]) for pairs, c, _ in reliability(answers))
            bins.append(Series(job.label, tuple(_mean(*point) for point in means)))
    for _, score in metrics:
        nonempty = [line for line in risks if line.points]
        if nonempty:
            title = f"Risk against coverage: most confident answers first, {packed.task}"
            yield lines(title, nonempty, x_name="% of the answers", y_name=f"100 - {score}")
        title = f"{score} against confidence in bins, equality dotted, {packed.task}"
        places = [point.x for line in bins for point in line.points]
        equal = [Point(x, x, x, x) for x in (min(places), max(places))] if places else []
        yield from _plot(title, bins, "confidence, %", score, front=equal)


def _risks(answers: Answers) -> Iterator[Point]:
    means = scores_by_coverage(answers)
    for place in range(_COVERED if means else 0):
        count = -(-len(means) * (place + 1) // _COVERED)
        risk = _SPAN - means[count - 1]
        yield Point(_SPAN * (place + 1) / _COVERED, risk, risk, risk)


def _recall_by_rank(gains: Sequence[tuple[int, float]]) -> list[float]:
    """Returns the recall up to each rank in per cent; 0 for failures, as in the funnel."""
    by_rank = dict(gains)
    shares = (by_rank.get(rank, 0.0) for rank in range(1, _RANKS + 1))
    return [_SPAN * share for share in accumulate(shares, max)]


def _plot(
    title: str,
    series: Sequence[Series],
    x: str,
    y: str,
    *,
    logarithmic: bool = False,
    front: Sequence[Point] = (),
) -> Iterator[Plot]:
    """Yields the plot, if any series has a point."""
    if nonempty := [line for line in series if line.points]:
        title = f"{title}: {_BAND}"
        yield lines(title, nonempty, x_name=x, y_name=y, logarithmic=logarithmic, front=front)


def _binned(pairs: Sequence[tuple[float | None, float | None]]) -> tuple[Point, ...]:
    """Returns the means of `y` in bins of equal count, each at the median of its `x`."""
    points = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    count = max(1, min(_BINS, len(points) // _IN_BIN))
    edges = [len(points) * index // count for index in range(count + 1)]
    bins = [points[start:end] for start, end in pairwise(edges) if start < end]
    means = (_mean(bin_[len(bin_) // 2][0], [y for _, y in bin_]) for bin_ in bins)
    by_x = {point.x: point for point in means}  # merges bins with the same median length
    return tuple(by_x[x] for x in sorted(by_x))


def _mean(x: float, values: Sequence[float]) -> Point:
    mean = fmean(values)
    error = _Z * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Point(x, mean, max(0.0, mean - error), min(max(_SPAN, mean), mean + error))


def _sweeps(comparison: TaskComparison, metric: str, score: str) -> Iterator[Plot]:
    """Yields the score against each numeric parameter of a sweep."""
    sweeps: defaultdict[str, defaultdict[str, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for entry in comparison.entries:
        for name, value, label in _swept(entry):
            sweeps[name][label].append(measured(value, entry, metric, ""))
    for name, series in sweeps.items():
        sorted_series = [Series(label, ascending(points)) for label, points in series.items()]
        nonempty = [line for line in sorted_series if len({p.x for p in line.points}) > 1]
        if nonempty:
            title = f"{score} against {name}, {comparison.task}: with 95 % intervals"
            yield lines(title, nonempty, x_name=name, y_name=score)


def _swept(entry: PipelineScores) -> Iterator[tuple[str, float, str]]:
    """Yields (parameter, value, label without this parameter) for a point of a sweep."""
    base, _, point = entry.label.partition("@")
    settings = [setting.partition("=") for setting in re.split(r",(?=[\w.]+=)", point) if setting]
    for name, _, value in settings:
        with suppress(ValueError):
            suffix = ",".join(f"{key}={setting}" for key, _, setting in settings if key != name)
            number = float(value)
            if math.isfinite(number):
                yield name, number, f"{base}@{suffix}" if suffix else base


def ascending(points: Sequence[Point]) -> tuple[Point, ...]:
    """Returns the points in the order of `x`."""
    return tuple(sorted(points, key=lambda point: point.x))


def _costs(comparison: TaskComparison, metric: str, score: str) -> Iterator[Plot]:
    """Yields the score against each kind of cost that is known for all pipelines."""
    kinds: list[tuple[str, Callable[[PipelineScores], float | None]]] = [
        ("seconds per example", lambda entry: entry.seconds),
        ("input tokens per example", lambda entry: entry.input_tokens / entry.examples or None),
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
    """Returns a point with a pipeline's score and its interval."""
    score = entry.scores[metric]
    low, high = score.interval or (score.value, score.value)
    return Point(x, score.value, low, high, label)


def front(points: Sequence[Point]) -> list[Point]:
    """Returns the Pareto front, cheapest first: points that score more than all cheaper points."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.x, -point.y)):
        if not best or point.y > best[-1].y:
            best.append(point)
    return best
