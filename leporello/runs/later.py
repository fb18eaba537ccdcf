"""Computes slow metrics after all reads, in a separate process, example by example.

A file with one line per example stores the statistics, so that an interrupted run resumes.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from leporello.config.metrics import metrics_of
from leporello.core.environment.json_table import JsonTable
from leporello.core.errors import Stopped, UserError
from leporello.core.files import read_rows
from leporello.core.hashing import digest
from leporello.core.records import Document, Example, Prediction
from leporello.engine.progress import Progress
from leporello.engine.results.serialization import empty_prediction
from leporello.engine.task_examples import checked
from leporello.executors.channel import InvalidMessageError, load
from leporello.executors.child_process import ChildProcess, connected
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.metrics import GoldError, Statistics
from leporello.metrics.protocol import is_later

_LOOK = 0.1  # seconds between checks whether the run must stop


def later_statistics(job: Job, files: JobFiles, context: RunContext) -> tuple[JsonTable, str]:
    """Returns the statistics of metrics that are computed after all reads, by example number.

    Missing statistics are computed first. The second value is the reason why the computation
    stopped early, or empty.

    Raises:
        UserError: A metric fails.
    """
    table, missing = JsonTable(), 0
    if not (names := _names(job)):
        return table, ""
    stored = _stored_statistics(files.later)
    for number, text in _predictions(files):
        if (statistics := stored.get(digest([number, text, *names]))) is not None:
            table.add(number, statistics)
        else:
            missing += 1
    try:
        if missing:
            _compute(table, missing, job, files, context)
    except Stopped as reason:
        return table, str(reason)
    return table, ""


def _names(job: Job) -> list[str]:
    return [name for name, metric in metrics_of(job.metrics).items() if is_later(metric)]


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
    table: JsonTable, missing: int, job: Job, files: JobFiles, context: RunContext
) -> None:
    """Computes the missing statistics and adds them to the table."""
    names = _names(job)
    title = f"{', '.join(names)} of {job.name}"
    examples = enumerate(checked(job.source.examples, job.task.name))
    files.folder.mkdir(parents=True, exist_ok=True)
    with (
        Progress(title, len(table) + missing) as progress,
        _Process(job.metrics, names) as process,
        files.later.open("a", encoding="utf-8") as file,
    ):
        progress.already_done(len(table))
        for number, text in _predictions(files):
            if table.get(number) is not None:
                continue
            context.check(progress)
            example = next(candidate for index, candidate in examples if index == number)
            # Metrics compare texts of answers; sending a book to the process for each would take
            # longer.
            gold = dataclasses.replace(example, document=Document("", ""))
            prediction = dataclasses.replace(empty_prediction(gold), prediction=text)
            statistics = process.ask(prediction, gold, lambda: context.check(progress))
            table.add(number, {**statistics})
            # By prediction too: after a retry or an update the old statistics must not count.
            row = {"key": digest([number, text, *names]), "statistics": statistics}
            file.write(json.dumps(row) + "\n")
            file.flush()
            progress.example()


class _Process:
    """Separate process that computes the metrics."""

    def __init__(self, metrics: Any, names: list[str]) -> None:  # noqa: ANN401 -- as a task lists them
        self._child = ChildProcess(f"{__name__}:work")
        self._child.channel.send(([*metrics], names))

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.stop()

    def ask(
        self,
        prediction: Prediction,
        example: Example,
        check: Any,  # noqa: ANN401 -- takes nothing
    ) -> Mapping[str, Statistics | None]:
        """Returns the statistics of all metrics; checks meanwhile whether the run must stop."""
        channel = self._child.channel
        try:
            channel.send((prediction, example))
            while (message := channel.take()) is None:
                wait([channel.fileno()], _LOOK)
                check()
            reply, fault = load(message)
        except InvalidMessageError:
            raise UserError(
                "the process that computes metrics sent an invalid message: a metric wrote to a"
                " file that it did not open"
            ) from None
        except (EOFError, OSError):
            cause = self._child.cause()
            raise UserError(f"the process that computes metrics {cause}; run again") from None
        if fault:
            raise UserError(f"example {example.id!r}: {fault}; outputs are stored: run again")
        statistics: Mapping[str, Statistics | None] = reply
        return statistics


def work() -> None:
    """Answers the requests of `_Process` until it closes the connection."""
    channel = connected()
    # A normal exit of Python also ends the programs that a metric has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    entries, names = channel.receive()
    metrics = {name: metric for name, metric in metrics_of(entries).items() if name in names}
    while True:
        try:
            prediction, example = channel.receive()
        except EOFError:
            return
        try:
            rows = {n: metric.statistics(prediction, example) for n, metric in metrics.items()}
            channel.send((rows, ""))
        except GoldError:
            channel.send((dict.fromkeys(names), ""))
        except Exception as error:  # metrics may run programs in other languages
            channel.send(({}, f"{type(error).__name__}: {error}"))
