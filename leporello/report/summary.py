"""The top of the report: what was compared, which pipeline is best, and where answers are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    headers = (header.replace("_", " ") for header in table.headers)  # can be folded
    columns: list[_Column] = [*zip(headers, zip(*table.rows, strict=True), strict=True)]
    scores, notes = [entry.scores[metric] for entry in task.entries], table.notes
    if any(score.difference for score in scores):
        columns.insert(table.labels, _forest([score.difference for score in scores]))
        notes = (*notes, f"Differences are to {task.baseline}.")
    if table.labels > 1:
        columns.insert(0, ("#", [job.name for job in packed.jobs]))
    for name, of in _COSTS.items():
        costs = [*map(of, task.entries)]
        if any(costs):
            columns.append((name, [NO if cost is None else f"{cost:.3g}" for cost in costs]))
    rows = [*zip(*(cells for _, cells in columns), strict=True)]
    best_first = sorted(range(len(rows)), key=lambda row: -scores[row].value)
    return ResultTable(
        f"Summary of {task.task}",
        tuple(header for header, _ in columns),
        tuple(rows[row] for row in best_first),
        notes,
    )


_Column = tuple[str, Sequence[str]]  # header and cells
_COSTS: Mapping[str, Callable[[PipelineScores], float | None]] = {
    "seconds each": lambda entry: entry.seconds,
    "tokens each": lambda entry: entry.input_tokens / entry.examples,
    "dollars": lambda entry: entry.dollars,
}


def _forest(differences: Sequence[Difference | None]) -> _Column:
    """Returns an axis, and a drawing per row: differences with intervals, around a line at 0."""
    ends = [0.0, *(end for d in differences if d for end in (d.low, d.high))]
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    low, high = min(ends) - margin, max(ends) + margin
    x, y = scale(low, high, 0, _WIDTH), _HEIGHT / 2
    labels = (
        f'<text class="tick" x="{x(value):.1f}" y="14" text-anchor="middle">{value:g}</text>'
        for value in ticks(low, high)
        if _EDGE < x(value) < _WIDTH - _EDGE
    )
    axis = framed("Difference to the baseline", _WIDTH, 20, labels, "forest")
    grid = [line(x(value), 0, x(value), _HEIGHT, "grid") for value in ticks(low, high)]
    grid.append(line(x(0), 0, x(0), _HEIGHT, "zero"))

    def marks(difference: Difference | None) -> Iterator[str]:
        yield from grid
        if difference:
            is_certain = bool(star(difference))
            kind = "chance" if not is_certain else "better" if difference.value > 0 else "worse"
            yield line(x(difference.low), y, x(difference.high), y, f"whisker {kind}")
            yield f'<circle class="dot {kind}" cx="{x(difference.value):.1f}" cy="{y}" r="5"/>'

    return axis, [framed("", _WIDTH, _HEIGHT, marks(d), "forest") for d in differences]


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
