"""Sections of a report below its examples, by name.

A plug-in class can be a section too: its method `section(data)` receives all data of the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.analysis.comparison.tables import Comparison
from leporello.core.table import ResultTable
from leporello.jobs.results import Summary, ways_table
from leporello.report.curves import curves, effective_lengths, length_plots
from leporello.report.example_details import JobColumns
from leporello.report.example_index import Packed
from leporello.report.plots import Plot


@dataclass(frozen=True, slots=True)
class ReportData:
    """All data of a report.

    Attributes:
        comparison: Comparison of their pipelines, task by task.
        packed: Examples of each task, with each job's scores and traces.
        names: Short names of pipelines by their labels: `#1` for a point of a sweep.
    """

    runs: Sequence[Path]
    comparison: Comparison
    packed: Sequence[Packed]
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section; it is left out if it has only a title.

    Attributes:
        text: Paragraphs, separated by blank lines.
        plots: Plots from `leporello.report.plots`.
        notes: Notes for the top of the report on omitted content, with reasons.
    """

    title: str
    text: str = ""
    tables: Sequence[ResultTable] = ()
    plots: Sequence[Plot] = ()
    notes: Sequence[str] = ()


class Ways:
    """Tables of the ways that combiners chose to answer."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns one table per task."""
        tables = []
        for board, examples in zip(data.comparison.boards, data.packed, strict=True):
            rows = [(job.name, _ways(job)) for job in examples.jobs]
            if any(ways for _, ways in rows):
                tables.append(ways_table(f"Ways of {board.task}", rows))
        return ReportSection("Ways", tables=tables)


def _ways(job: JobColumns) -> Mapping[str, Mapping[str, int]]:
    summary = Summary({})
    for statistics in job.job.files.statistics():
        summary.add(statistics)
    return summary.ways


class Curves:
    """Plots of scores by length, position of the evidence, confidence and swept parameters."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns all curves that have data."""
        tasks = zip(data.comparison.boards, data.packed, strict=True)
        plots = [plot for task in tasks for plot in curves(*task)]
        return ReportSection("Curves", plots=plots)


class Lengths:
    """Plots of scores over lengths, for tasks that were run with several lengths."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns one plot per task, and the effective length for RULER."""
        boards = data.comparison.boards
        plots = [*length_plots(boards, data.names)]
        return ReportSection("Lengths", effective_lengths(boards) if plots else "", plots=plots)


SECTIONS: Mapping[str, type] = {
    "ways": Ways,
    "curves": Curves,
    "lengths": Lengths,
}
