"""Executors on this machine: in this process, or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing.connection import wait

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import Stopped, UserError
from leporello.engine.failures import TRIES
from leporello.engine.progress import ProgressCounts, Reporter
from leporello.executors.channel import InvalidMessageError, dump
from leporello.executors.child_process import ChildProcess
from leporello.executors.interface import JobGroupSpec, ShardOrder, ShardResult
from leporello.executors.pool import INTERVAL, WorkerLink, Workplace
from leporello.executors.worker import ShardWorker


class InProcess:
    """Runs shards in this process, one after the other; has the interface of `Pool`."""

    def __init__(self, spec: JobGroupSpec, check: Callable[[], None]) -> None:
        """Builds the pipelines; see `executor_for`."""
        self._reporter = Reporter(lambda _: None, check, spec.report_every)
        self._worker = ShardWorker(spec, self._reporter)
        self.workers = 1
        self.sizes = self._worker.sizes

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields the result of each order; see `Pool`."""
        self._reporter.report = report
        for result in self._worker.run(iter(orders)):
            yield result
            if result.outcome == "stopped":
                raise Stopped(result.error)
            if result.outcome == "failed":
                raise UserError(result.error)


class WorkerProcess:
    """A worker process on this machine; see `WorkerLink`.

    Attributes:
        channel: Connection to the process.
        end: Function that kills the process.
    """

    def __init__(
        self,
        spec: bytes,
        threads: int,
        variables: Mapping[str, str],
        memory: int = 0,
        remapped: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the process with a pickled group of jobs; `memory` is in bytes, 0 sets no limit.

        `remapped` contains paths of plug-ins' files on this machine, by their paths on the
        driver's.

        Raises:
            OSError: The process cannot be started.
        """
        # Idle threads sleep: threads that spin compete with other processes. On a busy machine
        # torch fell from 47 to 1.6 tokens per second with two threads (decision 4).
        threading = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
        variables = {**threading, **variables}
        self._process = ChildProcess("leporello.executors.worker:main", variables)
        self.channel, self.end = self._process.channel, self._process.end
        self._message: bytes | None = None
        self.send(dump((memory, remapped or {}, spec)))

    def send(self, message: bytes) -> None:
        """Sends a pickled message; ends a process that does not take it."""
        try:
            self.channel.send_bytes(message)
        except OSError:
            self.end()  # `receive` reports the death

    def has_message(self) -> bool:
        """Returns whether `receive` has a message, without waiting for one."""
        if self._message is None:
            try:
                self._message = self.channel.take()
            except InvalidMessageError:
                self._message = dump(("died", "sent an invalid message"))
            except (EOFError, OSError):
                self._message = dump(("died", self._process.cause()))
        return self._message is not None

    def receive(self) -> bytes:
        """Returns the next pickled message; if the process has ended, the cause of its death."""
        while not self.has_message():
            wait([self.channel.fileno()])
        message, self._message = self._message, None
        assert message is not None
        return message


class LocalWorkers(Workplace):
    """Worker processes on this machine."""

    tries = TRIES
    advice = "see its output above, or use --workers 0 to run in this process"

    def __init__(self, spec: JobGroupSpec, placement: Placement, count: int) -> None:
        """Prepares up to `count` workers; starts none."""
        self._spec, self._placement, self.workers = dump(spec), placement, count
        self._gpus: dict[WorkerLink, str | None] = {}

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:
        """Starts a worker on the GPU with the fewest workers."""
        gpus_in_use = [self._gpus[link] for link in others]
        # By current workers, since a replaced worker must get the GPU that became free.
        gpu = min(visible_gpus(), key=gpus_in_use.count, default=None)
        variables = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        placement = self._placement
        try:
            link = WorkerProcess(self._spec, placement.threads, variables, placement.worker_bytes)
        except OSError as error:
            raise UserError(
                f"a worker process could not start: {error.strerror}; use fewer --workers, or"
                " raise the limit (ulimit)"
            ) from error
        self._gpus[link] = gpu
        return link

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """See `Workplace`."""
        processes = [link for link in links if isinstance(link, WorkerProcess)]
        if not any(process.has_message() for process in processes):
            wait([process.channel.fileno() for process in processes], INTERVAL)
        return [process for process in processes if process.has_message()]
