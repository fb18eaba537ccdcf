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
from dataclasses import dataclass
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


@dataclass
class LaterMetrics:
    """What such metrics say of the examples of one pipeline on one task.

    Attributes:
        job: The pipeline and the task.
        files: Files of their results.
        context: What the run works with.
        stopped: Reason why it ended before all were computed; empty if none is missing.
    """

    job: Job
    files: JobFiles
    context: RunContext
    stopped: str = ""

    def found(self) -> JsonTable:
        """Returns the statistics of examples by their numbers, those that are missing computed.

        Raises:
            UserError: A metric fails.
        """
        names = [name for name, m in metrics_of(self.job.metrics).items() if is_later(m)]
        found, count = JsonTable(), 0
        if not names:
            return found
        kept = self._kept()
        for count, (number, text) in enumerate(self._predictions(), 1):  # noqa: B007 -- of all
            if (statistics := kept.get(digest([number, text, *names]))) is not None:
                found.add(number, statistics)
        if len(found) < count:
            try:
                self._compute(found, names, count)
            except Stopped as reason:
                self.stopped = str(reason)
        return found

    def _kept(self) -> JsonTable:
        """Returns what was computed by now; a line that a kill left half is cut off."""
        path, kept = self.files.later, JsonTable()
        if path.exists():
            with path.open("rb+") as file:
                file.truncate(sum(len(line) for line in file if line.endswith(b"\n")))
            for row in read_rows(path):
                kept.add(row["key"], row["statistics"])
        return kept

    def _predictions(self) -> Iterator[tuple[int, str]]:
        """Yields the number and the prediction of each finished example; failures are empty."""
        for example in self.files.examples():
            text = example.prediction["prediction"] if example.prediction else ""
            yield example.statistics.number, text

    def _compute(self, found: JsonTable, names: list[str], count: int) -> None:
        """Adds what is missing to what was found."""
        title = f"{', '.join(names)} of {self.job.name}"
        examples = enumerate(checked(self.job.source.examples, self.job.task.name))
        self.files.folder.mkdir(parents=True, exist_ok=True)
        with (
            Progress(title, count) as progress,
            _Process(self.job.metrics, names) as process,
            self.files.later.open("a", encoding="utf-8") as file,
        ):
            progress.already_done(len(found))
            for number, text in self._predictions():
                if found.get(number) is not None:
                    continue
                self.context.check(progress)
                example = next(one for place, one in examples if place == number)
                gold = dataclasses.replace(example, document=Document("", ""))
                prediction = dataclasses.replace(empty_prediction(gold), prediction=text)
                statistics = process.ask(prediction, gold, lambda: self.context.check(progress))
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
