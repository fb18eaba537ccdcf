"""Sections of a report below its examples, by name.

A plug-in class can be a section too: its method `section(data)` receives all data of the report.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from leporello.analysis.comparison.tables import Comparison
from leporello.core.errors import UserError
from leporello.core.records import JSON
from leporello.core.table import ResultTable
from leporello.jobs.results import Summary, ways_table
from leporello.models.locate import model_fingerprint
from leporello.report.curves import curves, effective_lengths, length_plots
from leporello.report.example_index import Packed
from leporello.report.join import JobColumns
from leporello.report.plots import Plot, Point, Series, lines
from leporello.training.model_card import CARD, TrainingRecord, read_record


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
        return ReportSection("Curves", plots=[plot for task in tasks for plot in curves(*task)])


class Lengths:
    """Plots of scores over lengths, for tasks that were run with several lengths."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns one plot per task, and the effective length for RULER."""
        boards = data.comparison.boards
        plots = [*length_plots(boards, data.names)]
        return ReportSection("Lengths", effective_lengths(boards) if plots else "", plots=plots)


class TrainedReaders:
    """Curves of the training of readers."""

    def section(self, data: ReportData) -> ReportSection:
        """Returns a paragraph and the plots of each trained reader."""
        jobs = [job for examples in data.packed for job in examples.jobs]
        texts, plots, notes = trainings(jobs)
        return ReportSection("Training", "\n\n".join(texts), plots=plots, notes=notes)


SECTIONS: Mapping[str, type] = {
    "ways": Ways,
    "curves": Curves,
    "lengths": Lengths,
    "training": TrainedReaders,
}


_LOSSES = {"loss": "training", "validation_loss": "validation"}


def trainings(jobs: Sequence[JobColumns]) -> tuple[list[str], list[Plot], list[str]]:
    """Returns a paragraph per reader that `train` made, their plots, and notes on omitted ones."""
    users: dict[tuple[str, JSON], list[str]] = {}
    for job in jobs:
        for key in _models(job):
            users.setdefault(key, []).append(job.label)
    texts: list[str] = []
    plots: list[Plot] = []
    notes: list[str] = []
    for (model, content), labels in users.items():
        names = ", ".join(dict.fromkeys(labels))
        try:
            record = _record(Path(model), content)
        except UserError as error:
            notes.append(f"{names}: the training of its reader is not shown: {error}")
            continue
        if record:
            texts.append(_text(names, record))
            plots += _plots(record)
    return texts, plots, notes


def _models(job: JobColumns) -> Iterator[tuple[str, JSON]]:
    """Yields paths of the models of a job's reader, with their content hashes in the run."""
    signature = job.job.signature
    model = signature["pipeline"].get("reader", {}).get("model")
    if isinstance(model, str) and Path(model).is_absolute():
        yield model, signature.get("models", {}).get(model)


def _record(model: Path, content: JSON) -> TrainingRecord | None:
    if not model.exists():
        raise UserError(f"{model} does not exist any more")
    record = read_record(model)
    if record and model_fingerprint(str(model)) != content:
        raise UserError(f"{model} is another model now")
    return record


def _text(names: str, record: TrainingRecord) -> str:
    validated = f"validated on {record.validated}" if record.validated else "not validated"
    shared = f", {record.shared:,} of whose documents are training data" if record.shared else ""
    values = ", ".join(f"{name} {value}" for name, value in record.kept.items())
    checkpoint = f" Checkpoint: {values}." if values else ""
    return (
        f"{names}: trained on {record.learnt} of {record.task}, {validated}{shared}."
        f"{checkpoint} Settings and scores: {CARD} of the model."
    )


def _plots(record: TrainingRecord) -> Iterator[Plot]:
    where = f"{record.pipeline} on {record.task}"
    for rate, rows in record.curves.items():
        losses = [_series(rows, kind, name) for kind, name in _LOSSES.items()]
        yield from _plot(f"Loss at learning rate {rate}, {where}", "loss", losses)
    scores = [
        _series(rows, "validation_score", f"learning rate {rate}")
        for rate, rows in record.curves.items()
    ]
    yield from _plot(f"{record.metric} on validation, {where}", record.metric, scores)


def _plot(title: str, y: str, series: Sequence[Series]) -> Iterator[Plot]:
    if nonempty := [line for line in series if line.points]:
        yield lines(title, nonempty, x_name="steps of the optimizer", y_name=y, digits=4)


def _series(rows: Sequence[Mapping[str, float]], kind: str, name: str) -> Series:
    points = [(row["step"], row[kind]) for row in rows if kind in row]
    finite = [Point(x, y, y, y) for x, y in points if math.isfinite(y)]
    suffix = f" ({len(points) - len(finite):,} not finite)" if len(finite) < len(points) else ""
    return Series(f"{name}{suffix}", tuple(finite))
