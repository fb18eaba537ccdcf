"""Computes slow metrics after all reads, example by example.

A file with one line per example stores the statistics, so that an interrupted run resumes.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from leporello.config.metrics import metrics_of
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import Stopped, UserError
from leporello.core.files import append_rows, appended_rows
from leporello.core.hashing import digest
from leporello.core.records import Document, Example
from leporello.engine.progress import Progress
from leporello.engine.results.finished import empty_prediction
from leporello.engine.task_examples import checked
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.metrics import GoldError, Metric
from leporello.metrics.protocol import is_later


def later_statistics(job: Job, files: JobFiles, context: RunContext) -> tuple[JsonTable, str]:
    """Returns the statistics of metrics that are computed after all reads, by example number.

    Missing ones are computed. The second value is the reason for an early stop, or empty.
    """
    table = JsonTable()
    all_metrics = metrics_of(job.metrics).items()
    if not (metrics := {name: metric for name, metric in all_metrics if is_later(metric)}):
        return table, ""
    stored = JsonTable()
    for row in appended_rows(files.later):
        stored.add(row["key"], row["statistics"])
    examples = enumerate(checked(job.source.examples, job.task.name))
    title = f"{', '.join(metrics)} of {job.name}"
    files.folder.mkdir(parents=True, exist_ok=True)
    with Progress(title, job.expected(context.limit)) as progress:
        for finished in files.examples():
            number = finished.number
            text = finished.prediction["prediction"] if finished.prediction else ""
            # By prediction too: after a retry or an update the old statistics must not count.
            key = digest([number, text, *metrics])
            if (statistics := stored.get(key)) is None:
                try:
                    context.check(progress)
                except Stopped as reason:
                    return table, str(reason)
                example = next(candidate for index, candidate in examples if index == number)
                statistics = _statistics(metrics, text, example)
                append_rows(files.later, {"key": key, "statistics": statistics})
            table.add(number, statistics)
            progress.example()
    return table, ""


def _statistics(metrics: Mapping[str, Metric], text: str, example: Example) -> dict[str, Any]:
    """Returns the statistics of all metrics; None if the reference is unusable."""
    # Metrics compare texts of answers, and this prediction does not cover the document.
    gold = dataclasses.replace(example, document=Document("", ""))
    prediction = dataclasses.replace(empty_prediction(gold), prediction=text)
    try:
        return {name: metric.statistics(prediction, gold) for name, metric in metrics.items()}
    except GoldError:
        return dict.fromkeys(metrics)
    except Exception as error:  # metrics may run programs in other languages
        fault = f"{type(error).__name__}: {error}"
        raise UserError(
            f"example {example.id!r}: {fault}; outputs are stored: run again"
        ) from error
