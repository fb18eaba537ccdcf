"""A comparison as tables of text, and the formats of pages and papers."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leporello.analysis.comparison.comparison import Comparison, PipelineScores, TaskComparison
from leporello.analysis.comparison.oracle_gap import OracleGap
from leporello.analysis.comparison.scores import Difference, Score
from leporello.core.coverage import shown
from leporello.core.table import ResultTable
from leporello.jobs.results import marks
from leporello.metrics.confidence import TOLD

_LEVEL = 0.05
_HUNDRED = 100
_NO = "–"


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
    names = [name for name in TOLD if any(name in told for _, told in entries)]
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


def markdown(found: Iterable[ResultTable]) -> str:
    """Returns tables as Markdown."""
    return "\n".join(map(_markdown, found))


def _markdown(table: ResultTable) -> str:
    lines = [
        table.headers,
        ("---", *("---:" for _ in table.headers[1:])),
        *table.rows,
    ]
    text = "".join(f"| {' | '.join(map(_in_markdown, line))} |\n" for line in lines)
    notes = "".join(f"\n{_in_markdown(note)}\n" for note in table.notes)
    return f"### {_in_markdown(table.title)}\n\n{text}{notes}"


def _in_markdown(text: str) -> str:
    return re.sub(r"([\\|*_<`])", r"\\\1", " ".join(text.split()))


def latex(found: Iterable[ResultTable]) -> str:
    """Returns tables as LaTeX tables; they need the package booktabs."""
    return "\n".join(map(_latex, found))


def _latex(table: ResultTable) -> str:
    columns = "l" + "r" * (len(table.headers) - 1)
    lines = [f"{' & '.join(map(_in_latex, row))} \\\\" for row in table.rows]
    return "\n".join(
        [
            "\\begin{table}",
            "\\centering",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            f"{' & '.join(map(_in_latex, table.headers))} \\\\",
            "\\midrule",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            *(f"\\par\\footnotesize {_in_latex(note)}" for note in table.notes),
            f"\\caption{{{_in_latex(table.title)}}}",
            "\\end{table}\n",
        ]
    )


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)


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
        **{f"confidence_{name}": entry.confidence.get(name) for name in TOLD},
    }
