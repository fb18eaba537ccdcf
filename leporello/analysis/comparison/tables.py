"""A comparison, and its tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leporello.analysis.comparison.outcomes import OracleGap
from leporello.analysis.comparison.scores import Difference, Draws, Score
from leporello.core.coverage import shown
from leporello.core.table import ResultTable, frame, html
from leporello.jobs.confidence import SELECTIVITY_KEYS
from leporello.jobs.results import marks

if TYPE_CHECKING:
    from pandas import DataFrame

_LEVEL = 0.05
_HUNDRED = 100
_NO = "–"


@dataclass(frozen=True, slots=True)
class PipelineScores:
    """One pipeline on one task, over the examples that are compared.

    Attributes:
        label: Label of the pipeline: its name, with its run's where several runs have it.
        run: Directory of the run.
        pipeline: Name of the pipeline.
        scores: Scores by metric.
        examples: Number of examples that are compared.
        failures: Number of these that failed; they score as empty predictions.
        shares: Mean shares of the ledger by column, 0 to 1.
        seconds: Seconds of an example's dividing, selecting and reading; None if they were not
            measured.
        input_tokens: Number of tokens that the reader was given.
        output_tokens: Number of tokens that the reader wrote.
        dollars: Dollars that reading cost, where the reader knows prices.
        sees_gold: Whether a stage had the references or the evidence in view.
        normalised: Whether answers were brought into the form that metrics read.
        tuned: Number of the documents that its parameters were chosen on.
        confidence: What `leporello.jobs.confidence.selectivity` says, by the first metric.
    """

    label: str
    run: Path
    pipeline: str
    scores: Mapping[str, Score]
    examples: int
    failures: int
    shares: Mapping[str, float]
    seconds: float | None
    input_tokens: int
    output_tokens: int
    dollars: float | None
    sees_gold: bool
    normalised: bool
    confidence: Mapping[str, float]
    tuned: int = 0


@dataclass(frozen=True, slots=True)
class TaskComparison:
    """All pipelines on one task.

    Attributes:
        task: Name of the task.
        baseline: The label of the pipeline that the others are tested against.
        metrics: Headline by metric: the name of the score that it ranks by.
        entries: Scores of pipelines, one each, in the order of the runs.
        ladders: Oracle gaps: pipelines that differ only in a retriever that is an oracle, chance or
            none.
        warnings: Warnings of what makes the scores hard to compare.
    """

    task: str
    baseline: str
    metrics: Mapping[str, str]
    entries: tuple[PipelineScores, ...]
    ladders: tuple[OracleGap, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found.

    Attributes:
        boards: Comparisons by task, one each.
        draws: Settings of the resampling.
    """

    boards: tuple[TaskComparison, ...]
    draws: Draws

    def to_pandas(self) -> DataFrame:
        """Returns a row a task, metric and pipeline: scores, intervals, tests, shares and costs.

        Raises:
            UserError: pandas is not installed.
        """
        return frame(rows_of(self))

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        return html(tables_of(self))


def tables_of(comparison: Comparison) -> list[ResultTable]:
    """Returns for each task the scores, each metric's differences to the baseline, and the cost."""
    return [table for task in comparison.boards for table in _tables(task, comparison)]


def _tables(task: TaskComparison, comparison: Comparison) -> Iterator[ResultTable]:
    share = f"{comparison.draws.confidence:.0%}"
    yield ResultTable(
        f"Scores on {task.task}",
        ("pipeline", "n", "failed", *(f"{score} [{share}]" for score in task.metrics.values())),
        tuple(_scores(entry, task) for entry in task.entries),
        tuple(f"warning: {text}" for text in task.warnings),
    )
    if tested := [*_tested(task, share)]:
        yield from tested[:-1]
        yield replace(tested[-1], notes=(_explained(comparison),))
    for ladder in task.ladders:
        yield from _headroom(task, ladder)
    yield from confidence_tables(task.task, [(e.label, e.confidence) for e in task.entries])
    parts = shown(entry.shares for entry in task.entries)
    costs = tuple(_cost(entry, parts) for entry in task.entries)
    yield ResultTable(f"Coverage and cost on {task.task}", ("pipeline", *parts, *_COSTS), costs)


def confidence_tables(
    task: str, entries: Sequence[tuple[str, Mapping[str, float]]]
) -> Iterator[ResultTable]:
    """Yields what confidence is worth, if any pipeline has any.

    Args:
        task: Name of the task.
        entries: Labels of pipelines, with what `selectivity` says of them.
    """
    names = [name for name in SELECTIVITY_KEYS if any(name in told for _, told in entries)]
    rows = [
        (label, *(f"{told[name]:,.6g}" if name in told else _NO for name in names))
        for label, told in entries
        if told
    ]
    if rows:
        headers = tuple(
            name.replace("at_", "score at ") + " %" * name.startswith("at_") for name in names
        )
        yield ResultTable(
            f"Confidence on {task}", ("pipeline", *headers), tuple(rows), (_CONFIDENCE,)
        )


_CONFIDENCE = (
    "ece: expected calibration error, in bins of equal mass; aurc: area under the risk-coverage"
    " curve; score at 80 %: mean of the first metric over the surest 80 % of the answers"
)


def _headroom(task: TaskComparison, ladder: OracleGap) -> Iterator[ResultTable]:
    """Yields what each oracle is worth to each of the pipelines, by each metric."""
    values = {entry.label: entry.scores for entry in task.entries}
    for metric, score in task.metrics.items():
        rows = [
            (rung, *(_gain(values, metric, label, own) for own in ladder.pipelines))
            for rung, label in ladder.rungs
        ]
        yield ResultTable(
            f"Headroom of {score} on {task.task}",
            ("with the retriever", *ladder.pipelines),
            tuple(rows),
            (_HEADROOM,) if metric == [*task.metrics][-1] else (),
        )


_HEADROOM = (
    "Oracle and OracleAnswer: what a perfect retriever would add; what is missing then, reader and"
    " combiner lose. All: the whole document, cut where it must be. Random and First: what chance"
    " and the beginning give."
)


def _gain(values: Mapping[str, Mapping[str, Score]], metric: str, rung: str, pipeline: str) -> str:
    there = values[rung][metric].value
    return f"{there:.2f} ({there - values[pipeline][metric].value:+.2f})"


def _tested(task: TaskComparison, share: str) -> Iterator[ResultTable]:
    """Yields the differences to the baseline by each metric that has any."""
    for metric, score in task.metrics.items():
        rows = [(entry.label, entry.scores[metric].difference) for entry in task.entries]
        if tested := [(label, difference) for label, difference in rows if difference]:
            yield ResultTable(
                f"{score} on {task.task}, against {task.baseline}",
                ("pipeline", f"difference [{share}]", *_TESTS),
                tuple((label, *_difference(difference)) for label, difference in tested),
            )


_NESTED = ("label", "scores", "confidence")
_TESTS = ("wins/ties/losses", "p (bootstrap)", "p (randomisation)", "p (Holm)")
_COSTS = ("s/example", "tokens in", "tokens out", "dollars")


def _scores(entry: PipelineScores, task: TaskComparison) -> tuple[str, ...]:
    scores = [entry.scores[metric] for metric in task.metrics]
    counts = (f"{entry.examples:,}", f"{entry.failures:,}")
    told = marks(sees_gold=entry.sees_gold, normalised=entry.normalised, tuned=entry.tuned)
    return (entry.label + told, *counts, *map(_score, scores))


def _score(score: Score) -> str:
    if not score.examples:
        return _NO
    if score.interval is None:
        return f"{score.value:.2f}"
    low, high = score.interval
    return f"{score.value:.2f} [{low:.1f}, {high:.1f}]"


def _difference(one: Difference) -> tuple[str, ...]:
    star = "*" if one.p_corrected < _LEVEL else ""
    return (
        f"{one.value:+.2f} [{one.low:+.1f}, {one.high:+.1f}]",
        f"{one.wins}/{one.ties}/{one.losses}",
        f"{one.p_bootstrap:.4f}",
        f"{one.p_randomisation:.4f}",
        f"{one.p_corrected:.4f}{star}",
    )


def _explained(comparison: Comparison) -> str:
    draws = comparison.draws
    unit = "documents" if draws.by_document else "examples"
    return (
        f"{draws.samples:,} resamples of {unit}, seed {draws.seed}; paired bootstrap, approximate"
        f" randomisation, the latter corrected by Holm; * below {_LEVEL}"
    )


def _cost(entry: PipelineScores, parts: Sequence[str]) -> tuple[str, ...]:
    return (
        entry.label,
        *(f"{_HUNDRED * entry.shares[part]:.1f} %" for part in parts),
        _NO if entry.seconds is None else f"{entry.seconds:.3g}",
        f"{entry.input_tokens:,}",
        f"{entry.output_tokens:,}",
        _NO if entry.dollars is None else f"{entry.dollars:.4f}",
    )


def rows_of(comparison: Comparison) -> list[dict[str, Any]]:
    """Returns a row a task, metric and pipeline, every number in full."""
    return [
        _row(task, entry, metric)
        for task in comparison.boards
        for entry in task.entries
        for metric in task.metrics
    ]


def csv_of(comparison: Comparison) -> str:
    """Returns what `rows_of` does, as CSV."""
    rows = rows_of(comparison)
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def _row(task: TaskComparison, entry: PipelineScores, metric: str) -> dict[str, Any]:
    score = entry.scores[metric]
    low, high = score.interval or (None, None)
    apart = score.difference
    tests = {name: getattr(apart, name, None) for name in Difference.__slots__ if name != "value"}
    costs = {n: getattr(entry, n) for n in PipelineScores.__slots__ if n not in _NESTED}
    return {
        "task": task.task,
        "score": task.metrics[metric],
        "label": entry.label,
        "value": score.value,
        "low": low,
        "high": high,
        "baseline": task.baseline,
        "difference": apart.value if apart else None,
        **{f"difference_{n}" if n in ("low", "high") else n: v for n, v in tests.items()},
        **costs,
        **{f"confidence_{name}": entry.confidence.get(name) for name in SELECTIVITY_KEYS},
    }
