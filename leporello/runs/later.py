"""Metrics that are computed once all is read: by a process of their own, example by example.

What it finds is kept in a file beside the results, a line an example, so that a run that was ended
goes on behind the last one.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import sys
from collections.abc import Iterator, Mapping
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
from leporello.executors.child_process import ChildProcess, connected
from leporello.jobs.files import JobFiles
from leporello.jobs.jobs import Job, RunContext
from leporello.metrics import GoldError, Statistics
from leporello.metrics.protocol import is_later

_LOOK = 0.1  # seconds between looks at whether the run is to end


def later_statistics(job: Job, files: JobFiles, context: RunContext) -> tuple[JsonTable, str]:
    """Returns the statistics of examples by their numbers, those that are missing computed.

    Besides, why it ended before all were computed; empty if none is missing.

    Raises:
        UserError: A metric fails.
    """
    found, missing = JsonTable(), 0
    if not (names := _names(job)):
        return found, ""
    kept = _kept(files.later)
    for number, text in _predictions(files):
        if (statistics := kept.get(digest([number, text, *names]))) is not None:
            found.add(number, statistics)
        else:
            missing += 1
    try:
        if missing:
            _compute(found, missing, job, files, context)
    except Stopped as reason:
        return found, str(reason)
    return found, ""


def _names(job: Job) -> list[str]:
    return [name for name, metric in metrics_of(job.metrics).items() if is_later(metric)]


def _kept(path: Path) -> JsonTable:
    """Returns what was computed by now; a line that a kill left half is cut off."""
    kept = JsonTable()
    if path.exists():
        with path.open("rb+") as file:
            file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
        for row in read_rows(path):
            kept.add(row["key"], row["statistics"])
    return kept


def _predictions(files: JobFiles) -> Iterator[tuple[int, str]]:
    """Yields the number and the prediction of each finished example; failures are empty."""
    for example in files.examples():
        text = example.prediction["prediction"] if example.prediction else ""
        yield example.statistics.number, text


def _compute(
    found: JsonTable, missing: int, job: Job, files: JobFiles, context: RunContext
) -> None:
    """Adds what is missing to what was found."""
    names = _names(job)
    title = f"{', '.join(names)} of {job.name}"
    examples = enumerate(checked(job.source.examples, job.task.name))
    files.folder.mkdir(parents=True, exist_ok=True)
    with (
        Progress(title, len(found) + missing) as progress,
        _Process(job.metrics, names) as process,
        files.later.open("a", encoding="utf-8") as file,
    ):
        progress.already_done(len(found))
        for number, text in _predictions(files):
            if found.get(number) is not None:
                continue
            context.check(progress)
            example = next(one for place, one in examples if place == number)
            gold = dataclasses.replace(example, document=Document("", ""))
            prediction = dataclasses.replace(empty_prediction(gold), prediction=text)
            statistics = process.ask(prediction, gold, lambda: context.check(progress))
            found.add(number, {**statistics})
            row = {"key": digest([number, text, *names]), "statistics": statistics}
            file.write(json.dumps(row) + "\n")
            file.flush()
            progress.example()


class _Process:
    """The process beside this one, with the metrics in it."""

    def __init__(self, metrics: Any, names: list[str]) -> None:  # noqa: ANN401 -- as a task lists them
        self._child = ChildProcess(f"{__name__}:work")
        self._child.connection.send(([*metrics], names))

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
        """Returns what the metrics say; meanwhile looks whether the run is to end."""
        connection = self._child.connection
        try:
            connection.send((prediction, example))
            while not connection.poll(_LOOK):
                check()
            found, fault = connection.recv()
        except (EOFError, ConnectionError):
            cause = self._child.cause()
            raise UserError(f"the process that computes metrics {cause}; run again") from None
        if fault:
            raise UserError(f"example {example.id!r}: {fault}; what is read is kept: run again")
        statistics: Mapping[str, Statistics | None] = found
        return statistics


def work() -> None:
    """Answers for `_Process` until that is gone."""
    connection = connected()
    # With an exit of Python's own, so that programs that a metric has started end with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    entries, names = connection.recv()
    metrics = {name: metric for name, metric in metrics_of(entries).items() if name in names}
    while True:
        try:
            prediction, example = connection.recv()
        except EOFError:
            return
        try:
            found = {n: metric.statistics(prediction, example) for n, metric in metrics.items()}
            connection.send((found, ""))
        except GoldError:
            connection.send((dict.fromkeys(names), ""))
        except Exception as error:  # whatever a program of another language says
            connection.send(({}, f"{type(error).__name__}: {error}"))
