"""Main function of a worker process, which runs the shards that its driver sends."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from functools import partial
from io import TextIOWrapper
from os import _exit  # by name: a stage may replace functions of `os`
from pathlib import Path
from traceback import walk_tb
from typing import Any

from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.core.environment.platform import limit_memory
from leporello.core.errors import Stopped, UserError
from leporello.core.secrets import redact
from leporello.engine.failures import error_text
from leporello.executors.channel import Channel
from leporello.executors.child_process import connected
from leporello.executors.interface import JobGroupSpec, ShardOrder
from leporello.executors.pickling import load
from leporello.executors.pipelines import this_worker
from leporello.executors.worker import Reporter, ShardWorker
from leporello.jobs.directory import RunDirectory

_log = logging.getLogger("leporello")


def main() -> None:
    """Runs orders until the driver closes the connection."""
    sys.unraisablehook = threading.excepthook = _log_ignored
    try:
        channel = connected()
        memory, remapped, spec = channel.receive()
        REMAPPED_PATHS.update(remapped)
        # Before any stage runs: a failed allocation is an error of one example, but the kernel's
        # killer may choose any process of the machine.
        limit_memory(memory)
        _DriverConnection(channel).run(spec)
    except (EOFError, ConnectionError):  # the driver has ended
        pass
    except BaseException as error:
        [*_, place] = walk_tb(error.__traceback__)
        name, line = place[0].f_code.co_filename, place[1]
        _log.error("a worker failed: %s (%s:%d)", error_text(error), name, line)
        # `sys.exit` would wait for threads that a stage has started.
        _exit(1)


def _log_ignored(raised: sys.UnraisableHookArgs | threading.ExceptHookArgs) -> None:
    """Logs an error that a stage raised in a thread or a finaliser, where no caller catches it."""
    if raised.exc_value is not None:
        _log.warning("ignored an error in a thread or finaliser: %s", error_text(raised.exc_value))


def _log_to_file(path: Path) -> None:
    """Appends log messages of this process to a file, which the first message creates."""
    handler = _LogFile(path, encoding="utf-8", errors="backslashreplace", delay=True)
    handler.setFormatter(_WithoutKeys("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger().addHandler(handler)


class _LogFile(logging.FileHandler):
    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 -- logging's name
        """Ignores a full disk, which is reported when results are written."""


class _WithoutKeys(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _DriverConnection:
    """Messages between this worker and its driver."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._worker: ShardWorker | None = None

    def run(self, data: bytes) -> None:
        """Requests orders and sends their results, until the driver closes the connection."""
        try:
            spec: JobGroupSpec = load(data)
            folder = spec.remote.here().directory if spec.remote else spec.directory
            _log_to_file(RunDirectory(folder).worker_log(this_worker()))
            report = partial(self._send, "progress")
            reporter = Reporter(report, self._check, spec.report_every)
            self._worker = ShardWorker(spec, reporter, self._channel.check)
        except UserError as error:
            self._send("failed", str(error))
            return
        while True:
            for result in self._worker.run(self._orders()):
                self._send("result", result)

    def _orders(self) -> Iterator[ShardOrder]:
        while True:
            self._send("more", this_worker())
            message = self._channel.receive()
            if isinstance(message, ShardOrder):
                yield message
            elif message == "sizes":
                self._send_sizes()
            elif message == "stop":
                raise Stopped("")
            else:  # no more orders now: finish the open shards
                return

    def _send_sizes(self) -> None:
        assert self._worker is not None
        try:
            self._send("sizes", self._worker.sizes())
        except UserError as error:
            self._send("failed", str(error))

    def _check(self) -> None:
        if (message := self._channel.take()) is not None and load(message) == "stop":
            raise Stopped("")

    def _send(self, kind: str, content: Any) -> None:  # noqa: ANN401 -- any object
        self._channel.send((kind, content))
