"""The sections of a report between its scores and its examples, by their names.

A class of the user's own is one too: `section(data)` is given all that the report knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from leporello.analysis.comparison.tables import Comparison
from leporello.analysis.funnel.counts import Funnel
from leporello.config.suites import read_suites
from leporello.core.errors import UserError
from leporello.core.files import read_json
from leporello.core.table import ResultTable
from leporello.jobs.directory import RunDirectory
from leporello.jobs.results import Summary, ways_table
from leporello.report.curves import curves
from leporello.report.example_index import Packed
from leporello.report.join import ExampleFacts, JobRows
from leporello.report.lengths import effective_lengths, length_plots
from leporello.report.plots import Bar, Plot, bars
from leporello.report.training_section import TrainingSummary, trainings
from leporello.suites import suite_tables
from leporello.suites.layout import text_tables


@dataclass(frozen=True, slots=True)
class ReportData:
    """What a report knows.

    Attributes:
        runs: Directories of the runs.
        comparison: Comparison of their pipelines, task by task.
        packed: Examples of each task, with each job's scores.
        facts: Facts of what became of the examples.
    """

    runs: Sequence[Path]
    comparison: Comparison
    packed: Sequence[Packed]
    facts: ExampleFacts


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section; one that has nothing but a title is left out.

    Attributes:
        title: Title of the section.
        text: Paragraphs, parted by blank lines.
        tables: Tables.
        plots: Plots, as `leporello.report.plots` makes them.
        parts: Parts with facts and plots of their own.
        notes: Notes for the head of the report: what is left out, and why.
    """

    title: str
    text: str = ""
    tables: Sequence[ResultTable] = ()
    plots: Sequence[Plot] = ()
    parts: Sequence[TrainingSummary] = ()
    notes: Sequence[str] = ()


class Lost:
    """Where answers are lost: whose proof each stage kept whole."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns a plot a pipeline."""
        found = (_funnel_plots(one.jobs, data.facts.funnels) for one in data.packed)
        return ReportSection("Where answers are lost", plots=[*chain.from_iterable(found)])


def _funnel_plots(
    jobs: Sequence[JobRows], funnels: Mapping[tuple[Path, str, str], Funnel]
) -> Iterator[Plot]:
    """Yields for each pipeline the share of examples whose whole proof each stage kept."""
    for job in jobs:
        funnel = funnels.get(job.key)
        if funnel and funnel.steps:
            title = f"{job.label} on {job.task}: examples whose proof each stage kept whole"
            steps = [step for step in funnel.steps if step.of]
            labels = [f"{step.stage} ({step.lost:,} lost)" for step in steps]
            yield bars(title, [Bar(n, s.share) for n, s in zip(labels, steps, strict=True)])


class Ways:
    """Which of several ways answers came, where combiners choose."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns a table a task."""
        tables = []
        for board, one in zip(data.comparison.boards, data.packed, strict=True):
            told = [(job.label, _ways(job)) for job in one.jobs]
            if any(ways for _, ways in told):
                table = ways_table(f"Ways of {board.task}", told)
                tables.append(replace(table, notes=(*table.notes, *map(_seconds, one.jobs))))
        return ReportSection("Ways", tables=tables)


def _seconds(job: JobRows) -> str:
    file = RunDirectory(job.run).results(job.pipeline, job.task) / "timings.json"
    timings = read_json(file) if file.exists() else {}
    roles = timings.get("roles") or {"answer": timings.get("reading", {})}
    told = (f"{role} {one['seconds']:,.1f}" for role, one in roles.items() if "seconds" in one)
    return f"{job.label}: seconds of reading, as last measured: {', '.join(told) or 'unknown'}"


def _ways(job: JobRows) -> Mapping[str, Mapping[str, int]]:
    summary = Summary({})
    for statistics in job.files.statistics():
        summary.add(statistics)
    return summary.ways


class Curves:
    """Scores against lengths, places of the answer, swept parameters and cost."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns the curves that there are data for."""
        tasks = zip(data.comparison.boards, data.packed, strict=True)
        found = (curves(*task, data.facts) for task in tasks)
        return ReportSection("Curves", plots=[*chain.from_iterable(found)])


class Lengths:
    """Scores over lengths, where the runs hold several lengths of one task."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns a plot a task, and the effective length of RULER's."""
        boards = data.comparison.boards
        plots = [*length_plots(boards)]
        return ReportSection("Lengths", effective_lengths(boards) if plots else "", plots=plots)


class TrainedReaders:
    """How the readers were trained."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns a part a trained reader."""
        parts, notes = trainings([job for one in data.packed for job in one.jobs])
        return ReportSection("Training", parts=parts, notes=notes)


class PapersTables:
    """Tables of the suites whose tasks were run, with the papers' rows."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns the tables; what stands in the way of one is a note."""
        tables: list[ResultTable] = []
        notes: list[str] = []
        tasks = {board.task for board in data.comparison.boards}
        for suite in read_suites().values():
            try:
                made = suite_tables(suite, data.runs) if any(map(suite.has, tasks)) else ()
            except UserError as error:
                notes.append(f"no table of {suite.name}: {error}")
                continue
            tables += chain.from_iterable(map(text_tables, made))
        return ReportSection("Papers' tables", tables=tables, notes=notes)


SECTIONS: Mapping[str, type] = {
    "suites": PapersTables,
    "lost": Lost,
    "ways": Ways,
    "curves": Curves,
    "lengths": Lengths,
    "training": TrainedReaders,
}
