"""The result of `compare` in one sentence and one table per task."""

from dataclasses import replace

from leporello.analysis.comparison.tables import (
    Comparison,
    TaskComparison,
    difference_of,
    explained,
    scores_row,
    star,
    value_of,
)
from leporello.core.table import ResultTable, swept_columns


def summary_of(comparison: Comparison) -> list[ResultTable]:
    """Returns a table per task; its title names the best pipeline and its lead."""
    notes = (explained(comparison), "`--all` shows all differences, confidence, coverage and cost")
    *tables, last = map(score_table, comparison.boards)
    return [*tables, replace(last, notes=(*last.notes, *notes))]


def score_table(task: TaskComparison) -> ResultTable:
    """Returns the scores of the pipelines of a task, and their differences to the baseline."""
    first, *others = task.metrics
    names, labels = swept_columns([entry.label for entry in task.entries])
    has_failures = any(entry.failures for entry in task.entries)
    counts = ("n", "failed") if has_failures else ("n",)
    headers = (*names, *counts, task.metrics[first], "difference [95%]")
    rows = []
    for entry, label in zip(task.entries, labels, strict=True):
        marked, *numbers = scores_row(entry, task)
        suffix = marked.removeprefix(entry.label)
        value, *values = (value_of(entry.scores[metric]) for metric in (first, *others))
        difference = difference_of(entry.scores[first])
        cells = (*numbers[: len(counts)], value, difference, *values)
        rows.append((label[0] + suffix, *label[1:], *cells))
    further = (task.metrics[metric] for metric in others)
    warnings = tuple(f"warning: {text}" for text in task.warnings)
    title = f"{task.task}: {verdict(task)}"
    return ResultTable(title, (*headers, *further), tuple(rows), warnings, labels=len(names))


def verdict(task: TaskComparison) -> str:
    """Returns which pipeline has the best score, by how much, and whether that may be chance.

    Pipelines that use the gold answers or evidence do not count. The difference is to the
    baseline, or of the baseline to the next pipeline.
    """
    metric, score = next(iter(task.metrics.items()))
    honest = [e for e in task.entries if not e.sees_gold and e.scores[metric].examples]
    if not honest:
        return "no pipeline has a score"
    best, *others = sorted(honest, key=lambda entry: -entry.scores[metric].value)
    adjective = "the best " if others else ""
    leader = f"{best.label} has {adjective}{score}, {best.scores[metric].value:.2f}"
    tested = others[0] if others and best.label == task.baseline else best
    difference = tested.scores[metric].difference
    if not difference:
        return leader
    name = tested.label if tested is not best else task.baseline
    if not round(difference.value, 2):
        leaders = (
            f"{best.label} and {name} have {adjective}{score}, {best.scores[metric].value:.2f}"
        )
        return f"{leaders}; no difference (p = {difference.p_corrected:.4f})"
    low, high = sorted(map(abs, (difference.low, difference.high)))
    is_certain = bool(star(difference))
    interval = f" [{low:.1f}, {high:.1f}]" if is_certain else ""
    chance = "more than chance" if is_certain else "which may be chance"
    return (
        f"{leader}; {abs(difference.value):.2f}{interval} above {name}, {chance}"
        f" (p = {difference.p_corrected:.4f})"
    )
