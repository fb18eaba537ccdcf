"""The top of the report: what was compared, which pipeline is best, and where answers are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from markupsafe import Markup

from leporello.analysis.comparison.scores import Difference, Score
from leporello.analysis.comparison.summary import verdict
from leporello.analysis.comparison.tables import (
    NO,
    PipelineScores,
    TaskComparison,
    difference_of,
    scores_row,
    star,
    value_of,
)
from leporello.analysis.example_trace import STAGES
from leporello.core.errors import counted
from leporello.core.table import ResultTable, swept_columns
from leporello.report.example_index import NO_PROOF, NOT_LOST, Packed
from leporello.report.plots import framed, line, scale, ticks

_WIDTH, _HEIGHT = 260, 30  # of the forest plot in a row
_BAR = 120
_EDGE = 10  # labels closer to an end of the axis would be cut


def short_names(labels: Sequence[str]) -> dict[str, str]:
    """Returns short names by label: `#1`, `#2`, … for the points of sweeps."""
    _, rows = swept_columns(labels)
    numbers = count(1)
    return {
        label: f"#{next(numbers)}" if any(row[1:]) else label
        for label, row in dict(zip(labels, rows, strict=True)).items()
    }


@dataclass(frozen=True, slots=True)
class Board:
    """The top of one task."""

    task: str
    size: str  # numbers of its examples and documents
    verdict: str  # sentence on the best pipeline
    scores: ResultTable  # pipelines, best first, with differences to the baseline
    losses: ResultTable | None  # wrong answers by pipeline and stage; None without proofs


def board(number: int, task: TaskComparison, packed: Packed) -> Board:
    """Returns the top of one task."""
    documents = f" of {counted(len(packed.documents), 'document')}" if packed.documents else ""
    size = counted(len(packed.ids), "example") + documents
    losses = _losses(number, task, packed)
    return Board(task.task, size, verdict(task), _scores(task, packed), losses)


def _scores(task: TaskComparison, packed: Packed) -> ResultTable:
    """Returns the pipelines, best first; the points of sweeps have a column per parameter."""
    first, *further = task.metrics
    columns, labels = _columns([entry.label for entry in task.entries])
    has_failures = any(entry.failures for entry in task.entries)
    costs = {name: of for name, of in _COSTS.items() if any(map(of, task.entries))}
    names = {job.label: job.name for job in packed.jobs}
    forest = _Forest.of([entry.scores[first].difference for entry in task.entries])
    headers = (
        *columns,
        task.metrics[first].replace("_", " "),  # can be folded
        *((forest.axis(), f"difference to {names[task.baseline]}") if forest else ()),
        *(("n", "failed") if has_failures else ("n",)),
        *costs,
        *(task.metrics[metric].replace("_", " ") for metric in further),
    )
    rows = []
    for entry, label in zip(task.entries, labels, strict=True):
        marked, examples, failed, *_ = scores_row(entry, task)
        score = entry.scores[first]
        row = (
            names[entry.label] + marked.removeprefix(entry.label),
            *label,
            value_of(score),
            *(forest.cells(score, is_baseline=entry.label == task.baseline) if forest else ()),
            *((examples, failed) if has_failures else (examples,)),
            *(NO if (cost := of(entry)) is None else f"{cost:.3g}" for of in costs.values()),
            *(value_of(entry.scores[metric]) for metric in further),
        )
        rows.append((score.value, row))
    best_first = (row for _, row in sorted(rows, key=lambda row: -row[0]))
    warnings = tuple(f"Warning: {text}." for text in task.warnings)
    return ResultTable(f"Summary of {task.task}", headers, tuple(best_first), warnings)


_COSTS: Mapping[str, Callable[[PipelineScores], float | None]] = {
    "seconds each": lambda entry: entry.seconds,
    "tokens each": lambda entry: entry.input_tokens / entry.examples,
    "dollars": lambda entry: entry.dollars,
}


def _columns(labels: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Returns headers, and the cells behind the short name, with a column per swept parameter."""
    columns, rows = swept_columns(labels)
    if len(columns) == 1:
        return columns, [() for _ in rows]
    pipelines = {pipeline for pipeline, *_ in rows}
    if len(pipelines) == 1:
        return (*pipelines, *columns[1:]), [row[1:] for row in rows]
    return ("#", *columns), rows


@dataclass(frozen=True, slots=True)
class _Forest:
    """Forest plot in the rows of a table: differences with intervals, around a line at 0."""

    low: float  # left end of the axis
    high: float  # right end of the axis

    @staticmethod
    def of(differences: Sequence[Difference | None]) -> _Forest | None:
        """Returns the plot in which all intervals have a place; None without differences."""
        ends = [end for d in differences if d for end in (d.low, d.high)]
        if not ends:
            return None
        low, high = min(0.0, *ends), max(0.0, *ends)
        margin = 0.04 * (high - low) or 1.0
        return _Forest(low - margin, high + margin)

    def axis(self) -> Markup:
        """Returns the axis, for the head of the table."""
        places = {value: self._x(value) for value in ticks(self.low, self.high)}
        labels = (
            f'<text class="tick" x="{x:.1f}" y="14" text-anchor="middle">{value:g}</text>'
            for value, x in places.items()
            if _EDGE < x < _WIDTH - _EDGE
        )
        return framed("Difference to the baseline", _WIDTH, 20, labels, "forest")

    def cells(self, score: Score, *, is_baseline: bool) -> tuple[Markup, str]:
        """Returns the drawing of a row, and its difference as text."""
        zero, y = self._x(0), _HEIGHT / 2
        places = map(self._x, ticks(self.low, self.high))
        marks = [line(x, 0, x, _HEIGHT, "grid") for x in places]
        marks.append(line(zero, 0, zero, _HEIGHT, "zero"))
        difference = score.difference
        if not difference:
            return framed("", _WIDTH, _HEIGHT, marks, "forest"), "baseline" if is_baseline else NO
        is_certain = bool(star(difference))
        kind = "chance" if not is_certain else "better" if difference.value > 0 else "worse"
        low, high, value = map(self._x, (difference.low, difference.high, difference.value))
        marks.append(line(low, y, high, y, f"whisker {kind}"))
        marks.append(f'<circle class="dot {kind}" cx="{value:.1f}" cy="{y}" r="5"/>')
        return framed("", _WIDTH, _HEIGHT, marks, "forest"), difference_of(score)

    def _x(self, value: float) -> float:
        return scale(self.low, self.high, 0, _WIDTH)(value)


def _losses(number: int, task: TaskComparison, packed: Packed) -> ResultTable | None:
    """Returns the wrong answers of each pipeline by the first stage that lost the proof."""
    counts = [Counter(job.lost) for job in packed.jobs]
    stages = [stage for stage in range(len(STAGES)) if any(by_stage[stage] for by_stage in counts)]
    if not stages:
        return None
    most = max(by_stage[stage] for by_stage in counts for stage in stages)
    rows = []
    for place, (job, by_stage) in enumerate(zip(packed.jobs, counts, strict=True)):
        bars = (_bar(by_stage[stage], most, f"{number} {place} {stage}") for stage in stages)
        proved = len(packed.ids) - by_stage[NO_PROOF]
        rows.append((job.name, *bars, f"{by_stage[NOT_LOST]:,}", f"{proved:,}"))
    headers = ("pipeline", *(STAGES[stage] for stage in stages), "not lost", "of")
    return ResultTable(f"Answers lost on {task.task}", headers, tuple(rows))


def _bar(value: int, most: int, examples: str) -> Markup:
    if not value:
        return Markup()
    bar = f'<rect class="bar" width="{_BAR * value / most:.1f}" height="10"/>'
    drawing = framed("", _BAR, 10, [bar], "losses")
    return Markup(  # noqa: S704 -- all parts are ours
        f'<a href="#examples" title="Show these examples" data-filter="{examples}">'
        f"<span>{value:,}</span>{drawing}</a>"
    )
