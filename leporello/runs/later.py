"""Computes slow metrics after all reads, example by example; an interrupted run begins again."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from leporello.config.metrics import metrics_of
from leporello.core.errors import Stopped, UserError
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
        """Opens the task's examples on first use."""
        self.job, self.files, self.context = job, context.files(job), context
        self.stopped = ""  # reason why the run stopped before all statistics were computed
        all_metrics = metrics_of(job.metrics).items()
        self._metrics = {name: metric for name, metric in all_metrics if is_later(metric)}
        self._examples = enumerate(checked(job.source.examples, job.task.name))

    def rows(self) -> Iterator[FinishedRow]:
        """Yields the finished examples with statistics of these metrics, until the run stops."""
        if not self._metrics:
            yield from self.files.rows()
            return
        title = f"{', '.join(self._metrics)} of {self.job.name}"
        with Progress(title, self.job.expected(self.context.limit)) as progress:
            for row in self.files.rows():
                added = None if self.stopped else self._computed(row, progress)
                yield _with_statistics(row, added) if added else row
                progress.example()

    def _computed(self, row: FinishedRow, progress: Progress) -> Mapping[str, Any] | None:
        try:
            self.context.check(progress)
        except Stopped as reason:
            self.stopped = str(reason)
            return None
        example = next(candidate for index, candidate in self._examples if index == row.number)
        text = row.prediction["prediction"] if row.prediction else ""
        return _statistics(self._metrics, text, example)


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
