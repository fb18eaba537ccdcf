"""The top of the report: what was compared, which pipeline is best, and where answers are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from markupsafe import Markup

from leporello.analysis.comparison.scores import Difference
from leporello.analysis.comparison.summary import score_table, verdict
from leporello.analysis.comparison.tables import (
    NO,
    PipelineScores,
    TaskComparison,
    star,
)
from leporello.analysis.example_trace import STAGES
from leporello.core.errors import counted
from leporello.core.table import ResultTable, swept_columns
from leporello.report.example_details import NO_PROOF, NOT_LOST
from leporello.report.example_index import Packed
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
    """Returns the table of `compare`, best first, with short names, a forest plot and costs."""
    table, metric = score_table(task), next(iter(task.metrics))
    is_swept = table.labels > 1
    costs = {name: of for name, of in _COSTS.items() if any(map(of, task.entries))}
    forest = _Forest.of([entry.scores[metric].difference for entry in task.entries])
    headers = (
        *(("#",) if is_swept else ()),
        *table.headers[: table.labels],
        *((forest.axis(),) if forest else ()),
        *(header.replace("_", " ") for header in table.headers[table.labels :]),  # can be folded
        *costs,
    )
    rows = []
    for job, entry, row in zip(packed.jobs, task.entries, table.rows, strict=True):
        score = entry.scores[metric]
        cells = (
            *((job.name,) if is_swept else ()),
            *row[: table.labels],
            *((forest.drawing(score.difference),) if forest else ()),
            *row[table.labels :],
            *(NO if (cost := of(entry)) is None else f"{cost:.3g}" for of in costs.values()),
        )
        rows.append((score.value, cells))
    best_first = (row for _, row in sorted(rows, key=lambda row: -row[0]))
    notes = (*table.notes, *((f"Differences are to {task.baseline}.",) if forest else ()))
    title = f"Summary of {task.task}"
    return ResultTable(title, headers, tuple(best_first), notes)


_COSTS: Mapping[str, Callable[[PipelineScores], float | None]] = {
    "seconds each": lambda entry: entry.seconds,
    "tokens each": lambda entry: entry.input_tokens / entry.examples,
    "dollars": lambda entry: entry.dollars,
}


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

    def drawing(self, difference: Difference | None) -> Markup:
        """Returns the drawing of a row."""
        zero, y = self._x(0), _HEIGHT / 2
        places = map(self._x, ticks(self.low, self.high))
        marks = [line(x, 0, x, _HEIGHT, "grid") for x in places]
        marks.append(line(zero, 0, zero, _HEIGHT, "zero"))
        if difference:
            is_certain = bool(star(difference))
            kind = "chance" if not is_certain else "better" if difference.value > 0 else "worse"
            low, high, value = map(self._x, (difference.low, difference.high, difference.value))
            marks.append(line(low, y, high, y, f"whisker {kind}"))
            marks.append(f'<circle class="dot {kind}" cx="{value:.1f}" cy="{y}" r="5"/>')
        return framed("", _WIDTH, _HEIGHT, marks, "forest")

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
