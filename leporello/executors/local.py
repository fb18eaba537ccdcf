"""Executors on this machine: in this process, or in worker processes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import wait
from typing import Self

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import Stopped, UserError
from leporello.engine.failures import TRIES
from leporello.engine.progress import Listener, ProgressCounts
from leporello.executors.channel import dump
from leporello.executors.child_process import INTERVAL, WorkerProcess
from leporello.executors.interface import JobGroupSpec, ShardOrder, ShardResult
from leporello.executors.pool import WorkerLink, Workplace
from leporello.executors.worker import ShardWorker


class InProcess:
    """Runs shards in this process, one after the other; has the interface of `Pool`."""

    def __init__(self, spec: JobGroupSpec, check: Callable[[], None]) -> None:
        """Builds the pipelines; see `executor_for`."""
        self._listener = Listener(check=check, every=spec.report_every)
        self._worker = ShardWorker(spec, self._listener)
        self.workers = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields the result of each order; see `Pool`."""
        self._listener.report = report
        for result in self._worker.run(iter(orders)):
            yield result
            if result.outcome == "stopped":
                raise Stopped(result.error)
            if result.outcome == "failed":
                raise UserError(result.error)


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
            wait([process.fileno() for process in processes], INTERVAL)
        return [process for process in processes if process.has_message()]
