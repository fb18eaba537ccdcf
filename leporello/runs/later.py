"""Computes slow metrics after all reads, example by example.

A file with one line per example stores the statistics, so that an interrupted run resumes.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from leporello.config.metrics import metrics_of
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import Stopped, UserError
from leporello.core.files import append_rows, appended_rows
from leporello.core.hashing import digest
from leporello.core.records import Document, Example
from leporello.engine.progress import Progress
from leporello.engine.results.finished import FinishedRow, empty_prediction
from leporello.engine.task_examples import checked
from leporello.jobs.jobs import Job, RunContext
from leporello.metrics import GoldError, Metric
from leporello.metrics.protocol import is_later


class LaterMetrics:
    """Metrics of a job that are computed after all reads."""

    def __init__(self, job: Job, context: RunContext) -> None:
        """Reads the statistics that an interrupted run has computed."""
        self.job, self.files, self.context = job, context.files(job), context
        self.stopped = ""  # reason why the run stopped before all statistics were computed
        all_metrics = metrics_of(job.metrics).items()
        self._metrics = {name: metric for name, metric in all_metrics if is_later(metric)}
        self._examples = enumerate(checked(job.source.examples, job.task.name))
        self._stored = JsonTable()
        for row in appended_rows(self.files.later):
            self._stored.add(row["key"], row["statistics"])

    def rows(self) -> Iterator[FinishedRow]:
        """Yields the finished examples with statistics of these metrics, until the run stops."""
        if not self._metrics:
            yield from self.files.rows()
            return
        title = f"{', '.join(self._metrics)} of {self.job.name}"
        with Progress(title, self.job.expected(self.context.limit)) as progress:
            for row in self.files.rows():
                text = row.prediction["prediction"] if row.prediction else ""
                # By prediction too: after a retry or an update the old statistics must not count.
                key = digest([row.number, text, *self._metrics])
                added = self._stored.get(key)
                if added is None and not self.stopped:
                    added = self._computed(key, row.number, text, progress)
                yield _with_statistics(row, added) if added else row
                progress.example()

    def _computed(
        self, key: str, number: int, text: str, progress: Progress
    ) -> Mapping[str, Any] | None:
        try:
            self.context.check(progress)
        except Stopped as reason:
            self.stopped = str(reason)
            return None
        example = next(candidate for index, candidate in self._examples if index == number)
        statistics = _statistics(self._metrics, text, example)
        append_rows(self.files.later, {"key": key, "statistics": statistics})
        return statistics


def _with_statistics(row: FinishedRow, added: Mapping[str, Any]) -> FinishedRow:
    statistics = {**row.statistics.statistics, **added}
    line = json.dumps(replace(row.statistics, statistics=statistics).row(), ensure_ascii=False)
    content = line.encode(errors="backslashreplace") + b"\n"
    return replace(row, lines=(*row.lines[:2], content, row.lines[3]))


def _statistics(metrics: Mapping[str, Metric], text: str, example: Example) -> dict[str, Any]:
    """Returns the statistics of all metrics; None if the reference is unusable."""
    # Metrics compare texts of answers, and this prediction does not cover the document.
    gold = replace(example, document=Document("", ""))
    prediction = replace(empty_prediction(gold), prediction=text)
    try:
        return {name: metric.statistics(prediction, gold) for name, metric in metrics.items()}
    except GoldError:
        return dict.fromkeys(metrics)
    except Exception as error:  # metrics may run programs in other languages
        fault = f"{type(error).__name__}: {error}"
        raise UserError(
            f"example {example.id!r}: {fault}; outputs are stored: run again"
        ) from error
