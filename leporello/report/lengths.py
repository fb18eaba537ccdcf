"""Scores over lengths of one task, and RULER's effective length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from leporello.analysis.comparison.tables import TaskComparison
from leporello.report.curves import ascending, measured
from leporello.report.plots import Plot, Point, Series, lines

_AXIS = "length in tokens of the task"
_RULER = "ruler/"
_Lines = Mapping[str, Sequence[Point]]


def length_plots(boards: Sequence[TaskComparison]) -> Iterator[Plot]:
    """Yields a plot a task and score, and one of the mean over RULER's tasks."""
    found: defaultdict[tuple[str, str], defaultdict[str, list[Point]]]
    found = defaultdict(lambda: defaultdict(list))
    for board in boards:
        if parts := length_of(board.task):
            for metric, score in board.metrics.items():
                for entry in board.entries:
                    point = measured(parts[1], entry, metric, "")
                    found[parts[0], score][entry.label].append(point)
    means = {
        label: [Point(x, y, y, y) for x, y in means.items()]
        for label, (_, means) in ruler_averages(boards).items()
    }
    yield from _drawn("mean of RULER's tasks against length", means, "score")
    for (task, score), series in found.items():
        yield from _drawn(f"{score} against length, {task}: with 95 % intervals", series, score)


def _drawn(title: str, series: _Lines, score: str) -> Iterator[Plot]:
    shown = [Series(label, ascending(points)) for label, points in series.items()]
    if len({point.x for line in shown for point in line.points}) > 1:
        yield lines(title, shown, x_name=_AXIS, y_name=score, logarithmic=True)


def ruler_averages(boards: Sequence[TaskComparison]) -> dict[str, tuple[int, dict[int, float]]]:
    """Returns by pipeline how many tasks of RULER there are, and their mean by length.

    A length that some task is not there for has no mean. Tasks of other settings are apart.
    """
    scores: defaultdict[str, defaultdict[int, dict[str, float]]]
    scores = defaultdict(lambda: defaultdict(dict))
    for board in boards:
        parts = length_of(board.task)
        metric = next((each for each in board.metrics if each.startswith("string_match")), "")
        if parts and metric and parts[0].startswith(_RULER):
            name, _, settings = parts[0].partition("@")
            for entry in board.entries:
                label = f"{entry.label}, {settings}" if settings else entry.label
                scores[label][parts[1]][name] = entry.scores[metric].value
    averages = {}
    for label, one in scores.items():
        tasks = {name for own in one.values() for name in own}
        means = {x: fmean(own.values()) for x, own in one.items() if own.keys() == tasks}
        averages[label] = (len(tasks), means)
    return averages


def effective_lengths(boards: Sequence[TaskComparison]) -> str:
    """Returns a paragraph on the effective length of each pipeline; empty without RULER."""
    told = []
    for label, (tasks, means) in ruler_averages(boards).items():
        length = effective_length(means)
        shown = f"{length:,} tokens" if length else "none of the lengths"
        told.append(f"{label}: {shown} ({tasks} of 13 tasks)")
    head = f"Effective length, the longest with a mean of at least {THRESHOLD} (RULER)"
    return f"{head}: {'; '.join(told)}." if told else ""


# Llama2-7b's average at 4K: "exceeding a qualitative threshold, Llama-2-7b performance at 4K
# (85.6%)" (README of hsiehjackson/RULER).
THRESHOLD = 85.6


def effective_length(averages: Mapping[int, float]) -> int | None:
    """Returns the longest length whose average is not below the threshold; None if none is.

    Args:
        averages: Means over the tasks of RULER, 0 to 100, by length in tokens.
    """
    return max((length for length, mean in averages.items() if mean >= THRESHOLD), default=None)


def length_of(task: str) -> tuple[str, int] | None:
    """Returns the name without it and the length of `NAME@length=8192`; None of other names."""
    base, _, settings = task.partition("@")
    pairs = [setting.partition("=") for setting in settings.split(",")]
    lengths = [int(value) for name, _, value in pairs if name == "length" and value.isdecimal()]
    others = ",".join(f"{name}={value}" for name, _, value in pairs if name != "length")
    return (f"{base}@{others}" if others else base, lengths[0]) if lengths else None
