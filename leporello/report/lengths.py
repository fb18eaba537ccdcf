"""Plots scores over lengths of one task, and computes RULER's effective length."""

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


def length_plots(boards: Sequence[TaskComparison], names: Mapping[str, str]) -> Iterator[Plot]:
    """Yields one plot per task and score, and one of the mean over RULER's tasks.

    Args:
        boards: Comparisons of pipelines, one per task.
        names: Short names of pipelines by their labels.
    """
    all_series: defaultdict[tuple[str, str], defaultdict[str, list[Point]]]
    all_series = defaultdict(lambda: defaultdict(list))
    for board in boards:
        if parts := length_of(board.task):
            for metric, score in board.metrics.items():
                for entry in board.entries:
                    point = measured(parts[1], entry, metric)
                    all_series[parts[0], score][names[entry.label]].append(point)
    means = {
        label: [Point(x, y, y, y) for x, y in means.items()]
        for label, (_, means) in ruler_averages(boards).items()
    }
    yield from _plot("mean of RULER's tasks against length", means, "score")
    for (task, score), series in all_series.items():
        yield from _plot(f"{score} against length, {task}: with 95 % intervals", series, score)


def _plot(title: str, series: _Lines, score: str) -> Iterator[Plot]:
    nonempty = [Series(label, ascending(points)) for label, points in series.items()]
    if len({point.x for line in nonempty for point in line.points}) > 1:
        yield lines(title, nonempty, x_name=_AXIS, y_name=score, logarithmic=True)


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
    """Returns the longest length whose mean is not below the threshold, or None.

    Args:
        averages: Means over the tasks of RULER, 0 to 100, by length in tokens.
    """
    return max((length for length, mean in averages.items() if mean >= THRESHOLD), default=None)


def length_of(task: str) -> tuple[str, int] | None:
    """Returns the name without length, and the length, of `NAME@length=8192`; None without one."""
    base, _, settings = task.partition("@")
    pairs = [setting.partition("=") for setting in settings.split(",")]
    lengths = [int(value) for name, _, value in pairs if name == "length" and value.isdecimal()]
    suffix = ",".join(f"{name}={value}" for name, _, value in pairs if name != "length")
    return (f"{base}@{suffix}" if suffix else base, lengths[0]) if lengths else None
