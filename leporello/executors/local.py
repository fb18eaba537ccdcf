"""Shards worked at on this machine: in this process, or in processes beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import Stopped, UserError
from leporello.engine.failures import TRIES
from leporello.engine.limits import is_overdue
from leporello.engine.progress import ProgressCounts
from leporello.executors.child_process import ChildProcess
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pickling import dump
from leporello.executors.pool import PoolWorker, WorkerLink
from leporello.executors.worker import Reporter, ShardWorker

_LOOK = 0.2  # seconds between looks at a wish to stop


class InProcess:
    """Works at shards in this process, one after the other: a `Pool` without workers."""

    def __init__(self, spec: BatchSpec, check: Callable[[], None]) -> None:
        """Builds the pipelines; see `executor_for`."""
        self._reporter = Reporter(lambda _: None, check)
        self._worker = ShardWorker(spec, self._reporter, logs_attempts=False)
        self.workers = 1
        self.sizes = self._worker.sizes

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields what came of each order; see `Pool`."""
        self._reporter.report = report
        for result in self._worker.run(iter(orders)):
            yield result
            if result.outcome == "stopped":
                raise Stopped(result.error)
            if result.outcome == "failed":
                raise UserError(result.error)


class WorkerProcess:
    """A process beside this one that works at shards; see `WorkerLink`.

    Attributes:
        connection: Pipe to it.
        end: Function that kills it.
    """

    def __init__(
        self,
        spec: bytes,
        threads: int,
        variables: Mapping[str, str],
        memory: int = 0,
        remapped: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the process.

        Args:
            spec: The batch, dumped.
            threads: Threads that it computes with.
            variables: Variables that it has besides.
            memory: Bytes of memory that it gets at most; 0 is no limit.
            remapped: Places of plug-ins' files that lie elsewhere on this machine.

        Raises:
            OSError: It cannot be started.
        """
        # On a busy machine torch's two threads spun: 47 tokens a second fell to 1.6 (decision 4).
        own = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
        self._process = ChildProcess("leporello.executors.pool_worker:main", {**own, **variables})
        self.connection, self.end = self._process.connection, self._process.end
        self.send(dump((memory, remapped or {}, spec)))

    def send(self, message: bytes) -> None:
        """Sends what was dumped; a worker that is gone gets nothing."""
        with suppress(ConnectionError):  # as receiving will show
            self.connection.send_bytes(message)

    def receive(self) -> bytes:
        """Returns what it says, dumped; of one that is gone, how it died."""
        try:
            return self.connection.recv_bytes()
        except (EOFError, OSError):
            return dump(("died", self._process.cause()))


class LocalWorkers:
    """Processes beside this one; see `Workplace`."""

    tries = TRIES
    advice = "what it said stands above; --workers 0 does its work in this process"

    def __init__(self, spec: BatchSpec, placement: Placement, count: int) -> None:
        """Starts none; `count` are the most."""
        self._spec, self._placement, self.workers = dump(spec), placement, count
        self._deadline = spec.deadline
        self._gpus: dict[WorkerLink, str | None] = {}

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:
        """Starts a worker, on the GPU that has the fewest of them."""
        taken = [self._gpus[link] for link in others]
        gpu = min(visible_gpus(), key=taken.count, default=None)
        variables = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
        placement = self._placement
        try:
            link = WorkerProcess(self._spec, placement.threads, variables, placement.worker_bytes)
        except OSError as error:
            raise UserError(
                f"a worker process could not start: {error.strerror}; give fewer --workers, or"
                " raise the limit (ulimit)"
            ) from error
        self._gpus[link] = gpu
        return link

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """Returns those that say something, as soon as one does, or after some time none."""
        ways = {link.connection: link for link in links if isinstance(link, WorkerProcess)}
        return [ways[way] for way in wait([*ways], _LOOK) if way in ways]

    def watch(self, workers: Sequence[PoolWorker]) -> None:
        """Ends workers that have outlasted their deadline, which receiving shows."""
        for worker in workers:
            if any(is_overdue(self._deadline(shard)) for shard in worker.orders):
                worker.link.end()
