"""Computes slow metrics after all reads, example by example.

A file with one line per example stores the statistics, so that an interrupted run resumes.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from leporello.config.metrics import metrics_of
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import Stopped, UserError
from leporello.core.files import read_rows
from leporello.core.hashing import digest
from leporello.core.records import Document, Example, Prediction
from leporello.engine.progress import Progress
from leporello.engine.results.finished import empty_prediction
from leporello.engine.task_examples import checked
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.metrics import GoldError, Metric, Statistics
from leporello.metrics.protocol import is_later


def later_statistics(job: Job, files: JobFiles, context: RunContext) -> tuple[JsonTable, str]:
    """Returns the statistics of metrics that are computed after all reads, by example number.

    Missing ones are computed first. The second value is the reason for an early stop, or empty.
    """
    table, missing = JsonTable(), 0
    all_metrics = metrics_of(job.metrics).items()
    if not (metrics := {name: metric for name, metric in all_metrics if is_later(metric)}):
        return table, ""
    stored = _stored_statistics(files.later)
    for number, text in _predictions(files):
        if (statistics := stored.get(digest([number, text, *metrics]))) is not None:
            table.add(number, statistics)
        else:
            missing += 1
    try:
        if missing:
            _compute(table, metrics, job, files, context, missing=missing)
    except Stopped as reason:
        return table, str(reason)
    return table, ""


def _stored_statistics(path: Path) -> JsonTable:
    """Returns the statistics in a file, after removing a last line that a kill cut short."""
    stored = JsonTable()
    if path.exists():
        with path.open("rb+") as file:
            # Otherwise the next line would be appended to the half line, and both would be lost.
            file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
        for row in read_rows(path):
            stored.add(row["key"], row["statistics"])
    return stored


def _predictions(files: JobFiles) -> Iterator[tuple[int, str]]:
    """Yields the number and the prediction of each finished example; empty for failures."""
    for example in files.examples():
        text = example.prediction["prediction"] if example.prediction else ""
        yield example.statistics.number, text


def _compute(
    table: JsonTable, metrics: Mapping[str, Metric], job: Job, files: JobFiles,
    context: RunContext, *, missing: int,
) -> None:  # fmt: skip
    title = f"{', '.join(metrics)} of {job.name}"
    examples = enumerate(checked(job.source.examples, job.task.name))
    files.folder.mkdir(parents=True, exist_ok=True)
    with (
        Progress(title, len(table) + missing) as progress,
        files.later.open("a", encoding="utf-8") as file,
    ):
        progress.already_done(len(table))
        for number, text in _predictions(files):
            if table.get(number) is not None:
                continue
            context.check(progress)
            example = next(candidate for index, candidate in examples if index == number)
            # Metrics compare texts of answers, and this prediction does not cover the document.
            gold = dataclasses.replace(example, document=Document("", ""))
            prediction = dataclasses.replace(empty_prediction(gold), prediction=text)
            statistics = _statistics(metrics, prediction, gold)
            table.add(number, {**statistics})
            # By prediction too: after a retry or an update the old statistics must not count.
            row = {"key": digest([number, text, *metrics]), "statistics": statistics}
            file.write(json.dumps(row) + "\n")
            file.flush()
            progress.example()


def _statistics(
    metrics: Mapping[str, Metric], prediction: Prediction, example: Example
) -> dict[str, Statistics | None]:
    """Returns the statistics of all metrics; None if the reference is unusable."""
    try:
        return {name: metric.statistics(prediction, example) for name, metric in metrics.items()}
    except GoldError:
        return dict.fromkeys(metrics)
    except Exception as error:  # metrics may run programs in other languages
        fault = f"{type(error).__name__}: {error}"
        raise UserError(
            f"example {example.id!r}: {fault}; outputs are stored: run again"
        ) from error
