"""Data classes of a comparison, and functions that format it as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.analysis.comparison.scores import Difference, Draws, Score
from leporello.core.coverage import shown
from leporello.core.table import ResultTable, frame, html
from leporello.jobs.results import SELECTIVITY_KEYS, marks

if TYPE_CHECKING:
    from pandas import DataFrame

LEVEL = 0.05
_HUNDRED = 100
NO = "–"


@dataclass(frozen=True, slots=True)
class OracleGap:
    """Pipelines that differ only in the retriever, and of which some use oracles or baselines."""

    pipelines: tuple[str, ...]  # labels of the pipelines with real retrievers
    rungs: tuple[tuple[str, str], ...]  # classes and labels of oracles and baselines, best first


@dataclass(frozen=True, slots=True)
class PipelineScores:
    """One pipeline on one task, over the examples that are compared."""

    label: str  # name of the pipeline, with the run's name if several runs have such a pipeline
    run: Path
    pipeline: str
    reader: str  # class and model of its readers
    scores: Mapping[str, Score]
    examples: int  # number of examples that are compared
    failures: int  # number of these that failed; they score as empty predictions
    shares: Mapping[str, float]  # mean shares of the coverage by column, 0 to 1
    seconds: float | None  # of chunking, retrieval and reading per example; None if not measured
    input_tokens: int  # number of input tokens of the reader
    output_tokens: int  # number of output tokens of the reader
    dollars: float | None  # cost of the reads in dollars, if the reader has prices
    sees_gold: bool  # whether a stage used references or evidence
    normalised: bool  # whether answers were normalised for the metrics
    confidence: Mapping[str, float]  # `selectivity` by the judging metric
    tuned: int = 0  # number of documents on which the pipeline's parameters were tuned


@dataclass(frozen=True, slots=True)
class TaskComparison:
    """All pipelines on one task."""

    task: str
    baseline: str  # label of the pipeline that the others are tested against
    metrics: Mapping[str, str]  # headlines by metric: the names of the scores that rank pipelines
    entries: tuple[PipelineScores, ...]  # scores of the pipelines, in the order of the runs
    ladders: tuple[OracleGap, ...]  # oracle gaps: pipelines that differ only in the retriever
    warnings: tuple[str, ...]  # warnings about scores that are hard to compare


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of `compare`, with one of `boards` per task."""

    boards: tuple[TaskComparison, ...]
    draws: Draws

    def to_pandas(self) -> DataFrame:
        """Returns a table with one row per task, metric and pipeline; needs pandas."""
        return frame(rows_of(self))

    def _repr_html_(self) -> str:
        return "\n".join(map(html, tables_of(self)))


def tables_of(comparison: Comparison) -> list[ResultTable]:
    """Returns tables for each task: scores, differences to the baseline by metric, and costs."""
    return [table for task in comparison.boards for table in _tables(task, comparison)]


def _tables(task: TaskComparison, comparison: Comparison) -> Iterator[ResultTable]:
    yield ResultTable(
        f"Scores on {task.task}",
        ("pipeline", "n", "failed", *(f"{score} [95%]" for score in task.metrics.values())),
        tuple(scores_row(entry, task) for entry in task.entries),
        tuple(f"warning: {text}" for text in task.warnings),
    )
    if tested := [*_tested(task)]:
        yield from tested[:-1]
        yield replace(tested[-1], notes=(explained(comparison),))
    for ladder in task.ladders:
        yield from _headroom(task, ladder)
    yield from _confidence(task)
    parts = shown(entry.shares for entry in task.entries)
    costs = tuple(_cost(entry, parts) for entry in task.entries)
    yield ResultTable(
        f"Coverage and cost on {task.task}", ("pipeline", "reader", *parts, *_COSTS), costs
    )


def _confidence(task: TaskComparison) -> Iterator[ResultTable]:
    """Yields a table of results of `selectivity`, if any pipeline has confidence."""
    values = {entry.label: entry.confidence for entry in task.entries if entry.confidence}
    names = [n for n in SELECTIVITY_KEYS if any(n in numbers for numbers in values.values())]
    rows = tuple(
        (label, *(f"{numbers[n]:,.6g}" if n in numbers else NO for n in names))
        for label, numbers in values.items()
    )
    if rows:
        headers = (n.replace("at_", "score at ") + " %" * n.startswith("at_") for n in names)
        title = f"Confidence on {task.task}"
        yield ResultTable(title, ("pipeline", *headers), rows, (_CONFIDENCE,))


_CONFIDENCE = (
    "ece: expected calibration error, in bins of equal mass; aurc: area under the risk-coverage"
    " curve; score at 80 %: mean of the judging metric over the 80 % of answers with the highest"
    " confidence"
)


def _headroom(task: TaskComparison, ladder: OracleGap) -> Iterator[ResultTable]:
    """Yields the gain of each oracle over each pipeline, one table per metric."""
    values = {entry.label: entry.scores for entry in task.entries}
    for metric, score in task.metrics.items():
        rows = [
            (rung, *(_gain(values, metric, label, pipeline) for pipeline in ladder.pipelines))
            for rung, label in ladder.rungs
        ]
        yield ResultTable(
            f"Headroom of {score} on {task.task}",
            ("with the retriever", *ladder.pipelines),
            tuple(rows),
            (_HEADROOM,) if metric == [*task.metrics][-1] else (),
        )


_HEADROOM = (
    "Oracle and OracleAnswer: gain of a perfect retriever; reader and combiner lose the rest. All:"
    " the complete document, truncated if necessary. Random and First: random chunks, and the"
    " beginning of the document."
)


def _gain(values: Mapping[str, Mapping[str, Score]], metric: str, rung: str, pipeline: str) -> str:
    value = values[rung][metric].value
    return f"{value:.2f} ({value - values[pipeline][metric].value:+.2f})"


def _tested(task: TaskComparison) -> Iterator[ResultTable]:
    """Yields tables of the differences to the baseline, for metrics that have differences."""
    for metric, score in task.metrics.items():
        rows = [(entry.label, entry.scores[metric].difference) for entry in task.entries]
        if tested := [(label, difference) for label, difference in rows if difference]:
            yield ResultTable(
                f"{score} on {task.task}, against {task.baseline}",
                ("pipeline", "difference [95%]", *_TESTS),
                tuple((label, *_difference(difference)) for label, difference in tested),
            )


_NESTED = ("label", "scores", "confidence")
_TESTS = ("wins / ties / losses", "bootstrap p", "randomised p", "Holm p")
_COSTS = ("s/example", "tokens in", "tokens out", "dollars")


def scores_row(entry: PipelineScores, task: TaskComparison) -> tuple[str, ...]:
    """Returns the label with its marks, the counts of examples and failures, and the scores."""
    scores = [entry.scores[metric] for metric in task.metrics]
    counts = (f"{entry.examples:,}", f"{entry.failures:,}")
    suffix = marks(sees_gold=entry.sees_gold, normalised=entry.normalised, tuned=entry.tuned)
    return (entry.label + suffix, *counts, *map(_score, scores))


def value_of(score: Score) -> str:
    """Returns a score without its interval."""
    return f"{score.value:.2f}" if score.examples else NO


def _score(score: Score) -> str:
    if score.interval is None or not score.examples:
        return value_of(score)
    low, high = score.interval
    return f"{value_of(score)} [{low:.1f}, {high:.1f}]"


def difference_of(score: Score) -> str:
    """Returns the difference to the baseline with its interval, and a star if it is significant."""
    difference = score.difference
    return _with_interval(difference) + star(difference) if difference else NO


def _with_interval(difference: Difference) -> str:
    return f"{difference.value:+.2f} [{difference.low:+.1f}, {difference.high:+.1f}]"


def star(difference: Difference) -> str:
    """Returns a star if a difference is more than chance."""
    return "*" if difference.p_corrected < LEVEL else ""


def _difference(difference: Difference) -> tuple[str, ...]:
    return (
        _with_interval(difference),
        f"{difference.wins}/{difference.ties}/{difference.losses}",
        f"{difference.p_bootstrap:.4f}",
        f"{difference.p_randomisation:.4f}",
        f"{difference.p_corrected:.4f}{star(difference)}",
    )


def explained(comparison: Comparison) -> str:
    """Returns a note on the resampling and the p-values."""
    draws = comparison.draws
    unit = "documents" if draws.by_document else "examples"
    return (
        f"{draws.samples:,} resamples of {unit}, seed {draws.seed}; p-values of the paired"
        f" bootstrap and of randomisation, the latter also corrected by Holm; * below {LEVEL}"
    )


def _cost(entry: PipelineScores, parts: Sequence[str]) -> tuple[str, ...]:
    return (
        entry.label,
        entry.reader,
        *(f"{_HUNDRED * entry.shares[part]:.1f} %" for part in parts),
        NO if entry.seconds is None else f"{entry.seconds:.3g}",
        f"{entry.input_tokens:,}",
        f"{entry.output_tokens:,}",
        NO if entry.dollars is None else f"{entry.dollars:.4f}",
    )


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Returns one row per task, metric and pipeline, with unrounded numbers."""
    return [
        _row(task, entry, metric)
        for task in comparison.boards
        for entry in task.entries
        for metric in task.metrics
    ]


def _row(task: TaskComparison, entry: PipelineScores, metric: str) -> dict[str, Any]:
    score = entry.scores[metric]
    low, high = score.interval or (None, None)
    difference = score.difference
    tests = {
        name: getattr(difference, name, None) for name in Difference.__slots__ if name != "value"
    }
    costs = {n: getattr(entry, n) for n in PipelineScores.__slots__ if n not in _NESTED}
    return {
        "task": task.task,
        "score": task.metrics[metric],
        "label": entry.label,
        "value": score.value,
        "low": low,
        "high": high,
        "baseline": task.baseline,
        "difference": difference.value if difference else None,
        **{f"difference_{n}" if n in ("low", "high") else n: v for n, v in tests.items()},
        **costs,
        **{f"confidence_{name}": entry.confidence.get(name) for name in SELECTIVITY_KEYS},
    }
