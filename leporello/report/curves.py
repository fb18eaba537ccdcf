"""Plots scores by length, position, confidence and swept parameters, and recall by k."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate
from statistics import fmean, stdev

from leporello.analysis.comparison.tables import PipelineScores, TaskComparison
from leporello.analysis.example_trace import ExampleTrace
from leporello.core.table import swept_columns
from leporello.jobs.results import reliability
from leporello.report.example_index import Packed
from leporello.report.plots import Plot, Point, Series, lines

LEAST = 10
"""Minimum number of examples in a bin: means of fewer are mostly chance."""

_RANKS = 20  # ranks of the recall curve
_SPAN = 100  # scores and shares are drawn from 0 to 100
_Z = 1.96  # standard errors on either side of a 95 % band
_BAND = "mean with 95 % interval"
_Points = Mapping[str, Sequence[Point]]  # by pipeline


def curves(comparison: TaskComparison, packed: Packed) -> Iterator[Plot]:
    """Yields all curves that have data; scores are those of the task's first metric."""
    metric, score = next(iter(comparison.metrics.items()))
    task, jobs = packed.task, packed.jobs
    scores = {job.name: job.scores[metric] for job in jobs}

    lengths = [None if length is None else max(1, length) for length in packed.lengths]
    points: _Points = {name: binned(lengths, column) for name, column in scores.items()}
    title = f"{score} by length of the document, {task}: {_BAND}"
    yield from _plot(title, points, "characters of the document", score, logarithmic=True)

    points = {j.name: binned([*map(_percent, j.traces)], scores[j.name]) for j in jobs}
    title = f"{score} by position of the evidence, {task}: {_BAND}"
    yield from _plot(title, points, "position in the document, %", score)

    points = {job.name: [*_recall(job.traces)] for job in jobs}
    title = f"Recall of the evidence by the first k hits, {task}: {_BAND}"
    yield from _plot(title, points, "k", "% of the evidence")

    percents = {j.name: [c if c is None else _SPAN * c for c in j.confidences] for j in jobs}
    points = {name: binned(column, scores[name]) for name, column in percents.items()}
    places = [point.x for line in points.values() for point in line]
    equal = [Point(x, x, x, x) for x in (min(places), max(places))] if places else []
    title = f"{score} by confidence, equality dotted, {task}: {_BAND}"
    yield from _plot(title, points, "confidence, %", score, dotted=equal)

    yield from _sweeps(comparison, metric, score)


def _plot(
    title: str,
    points: _Points,
    x: str,
    y: str,
    *,
    logarithmic: bool = False,
    dotted: Sequence[Point] = (),
) -> Iterator[Plot]:
    """Yields a plot of the points by pipeline, if they have several places."""
    series = [
        Series(label, tuple(sorted(line, key=lambda point: point.x)))
        for label, line in points.items()
        if line
    ]
    if len({point.x for line in points.values() for point in line}) > 1:
        yield lines(title, series, x_name=x, y_name=y, logarithmic=logarithmic, dotted=dotted)


def _percent(trace: ExampleTrace | None) -> float | None:
    return None if trace is None or trace.position is None else _SPAN * trace.position


def _recall(traces: Sequence[ExampleTrace | None]) -> Iterator[Point]:
    """Yields the mean recall up to each rank in per cent; failures count as 0, as in the funnel."""
    recalls = []
    for gains in (dict(trace.gains) for trace in traces if trace and trace.gold):
        by_rank = (_SPAN * gains.get(rank, 0.0) for rank in range(1, _RANKS + 1))
        recalls.append([*accumulate(by_rank, max)])
    if len(recalls) >= LEAST:
        yield from map(_mean, range(1, _RANKS + 1), zip(*recalls, strict=True))


def binned(places: Sequence[float | None], scores: Sequence[float | None]) -> Sequence[Point]:
    """Returns the mean scores of bins of about equal count, each at its mean place."""
    pairs = zip(places, scores, strict=True)
    bins = reliability([(x, y) for x, y in pairs if x is not None and y is not None])
    return [_mean(x, [y for _, y in points]) for points, x, _ in bins if len(points) >= LEAST]


def _mean(x: float, values: Sequence[float]) -> Point:
    mean = fmean(values)
    error = _Z * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Point(x, mean, max(0.0, mean - error), min(max(_SPAN, mean), mean + error))


def _sweeps(comparison: TaskComparison, metric: str, score: str) -> Iterator[Plot]:
    (_, *names), rows = swept_columns([entry.label for entry in comparison.entries])
    for place, name in enumerate(names):
        points: defaultdict[str, list[Point]] = defaultdict(list)
        for entry, (pipeline, *values) in zip(comparison.entries, rows, strict=True):
            others = [f"{n} {v}" for n, v in zip(names, values, strict=True) if n != name and v]
            with suppress(ValueError):
                if math.isfinite(value := float(values[place])):
                    points[", ".join([pipeline, *others])].append(_point(value, entry, metric))
        several = {label: line for label, line in points.items() if len({p.x for p in line}) > 1}
        title = f"{score} by {name}, {comparison.task}: with 95 % intervals"
        yield from _plot(title, several, name, score)


def _point(x: float, entry: PipelineScores, metric: str) -> Point:
    """Returns a point with a pipeline's score and its interval."""
    score = entry.scores[metric]
    low, high = score.interval or (score.value, score.value)
    return Point(x, score.value, low, high)


_AXIS = "length in tokens of the task"
_RULER = "ruler/"


def length_plots(boards: Sequence[TaskComparison], names: Mapping[str, str]) -> Iterator[Plot]:
    """Yields one plot per task and score, and one of the mean over RULER's tasks."""
    all_series: defaultdict[tuple[str, str], defaultdict[str, list[Point]]]
    all_series = defaultdict(lambda: defaultdict(list))
    for board in boards:
        if parts := length_of(board.task):
            for metric, score in board.metrics.items():
                for entry in board.entries:
                    point = _point(parts[1], entry, metric)
                    all_series[parts[0], score][names[entry.label]].append(point)
    means = {
        label: [Point(x, y, y, y) for x, y in means.items()]
        for label, (_, means) in ruler_averages(boards).items()
    }
    title = "mean of RULER's tasks against length"
    yield from _plot(title, means, _AXIS, "score", logarithmic=True)
    for (task, score), points in all_series.items():
        title = f"{score} against length, {task}: with 95 % intervals"
        yield from _plot(title, points, _AXIS, score, logarithmic=True)


def ruler_averages(boards: Sequence[TaskComparison]) -> dict[str, tuple[int, dict[int, float]]]:
    """Returns by pipeline the number of RULER's tasks, and their mean score by length.

    A length without scores of all tasks has no mean. Tasks with different settings have separate
    labels.
    """
    scores: defaultdict[str, defaultdict[int, dict[str, float]]]
    scores = defaultdict(lambda: defaultdict(dict))
    for board in boards:
        parts = length_of(board.task)
        metric = next((name for name in board.metrics if name.startswith("string_match")), "")
        if parts and metric and parts[0].startswith(_RULER):
            name, _, settings = parts[0].partition("@")
            for entry in board.entries:
                label = f"{entry.label}, {settings}" if settings else entry.label
                scores[label][parts[1]][name] = entry.scores[metric].value
    averages = {}
    for label, by_length in scores.items():
        tasks = {name for by_task in by_length.values() for name in by_task}
        complete = {x: by_task for x, by_task in by_length.items() if by_task.keys() == tasks}
        means = {x: fmean(by_task.values()) for x, by_task in complete.items()}
        averages[label] = (len(tasks), means)
    return averages


def effective_lengths(boards: Sequence[TaskComparison]) -> str:
    """Returns a paragraph on the effective length of each pipeline; empty without RULER."""
    phrases = []
    for label, (tasks, means) in ruler_averages(boards).items():
        length = effective_length(means)
        longest = f"{length:,} tokens" if length else "none of the lengths"
        phrases.append(f"{label}: {longest} ({tasks} of 13 tasks)")
    heading = f"Effective length, the longest with a mean of at least {THRESHOLD} (RULER)"
    return f"{heading}: {'; '.join(phrases)}." if phrases else ""


# Llama2-7b's average at 4K: "exceeding a qualitative threshold, Llama-2-7b performance at 4K
# (85.6%)" (README of hsiehjackson/RULER).
THRESHOLD = 85.6


def effective_length(averages: Mapping[int, float]) -> int | None:
    """Returns the longest length whose mean over RULER's tasks reaches the threshold, or None."""
    return max((length for length, mean in averages.items() if mean >= THRESHOLD), default=None)


def length_of(task: str) -> tuple[str, int] | None:
    """Returns the name without length, and the length, of `NAME@length=8192`; None without one."""
    base, _, settings = task.partition("@")
    pairs = [setting.partition("=") for setting in settings.split(",")]
    lengths = [int(value) for name, _, value in pairs if name == "length" and value.isdecimal()]
    suffix = ",".join(f"{name}={value}" for name, _, value in pairs if name != "length")
    return (f"{base}@{suffix}" if suffix else base, lengths[0]) if lengths else None
