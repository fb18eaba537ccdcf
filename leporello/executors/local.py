"""Shards worked at on this machine: in this process, or in processes beside it."""

from __future__ import annotations

import itertools
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import wait
from typing import Any

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import Stopped, UserError
from leporello.engine.failures import TRIES
from leporello.engine.limits import deadline_of, forget_deadline, is_overdue
from leporello.engine.progress import ProgressCounts
from leporello.executors.child_process import ChildProcess
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pickling import dump, load
from leporello.executors.worker import Reporter, ShardWorker
from leporello.jobs.directory import RunDirectory
from leporello.jobs.files import JobFiles

_LOOK = 0.2  # seconds between looks at a wish to stop


class InProcess:
    """Works at shards in this process, one after the other; see `Executor`."""

    def __init__(self, spec: BatchSpec, check: Callable[[], None]) -> None:
        """Builds the pipelines; see `executor_for`."""
        self._reporter = Reporter(lambda _: None, check)
        self._worker = ShardWorker(spec, self._reporter, logs_attempts=False)

    @property
    def workers(self) -> int:
        """Number of workers: this process."""
        return 1

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of batches that the reader finds itself."""
        return self._worker.sizes()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields what came of each order; see `Executor`."""
        self._reporter.report = report
        for result in self._worker.run(iter(orders)):
            yield result
            if result.outcome == "stopped":
                raise Stopped(result.error)
            if result.outcome == "failed":
                raise UserError(result.error)


class ProcessPool:
    """Works at shards in processes beside this one; one that dies is replaced. See `Executor`.

    A worker asks for each shard. What it is given, it answers for: when it dies, its shards are
    handed out again, and what it had begun last is blamed (`AttemptLog`).
    """

    def __init__(
        self, spec: BatchSpec, placement: Placement, count: int, check: Callable[[], None]
    ) -> None:
        """Starts none before there is anything to do; `count` are the most. See `executor_for`."""
        self._spec, self._check = dump(spec), check
        directory = RunDirectory(spec.directory)
        self._attempts = JobFiles(directory, spec.pipelines[0], spec.task).attempts
        self._placement, self.workers = placement, count
        self._workers: list[_Worker] = []
        self._orders: Iterator[ShardOrder] = iter(())
        self._queue: deque[ShardOrder] = deque()
        self._died_idle = 0  # in a row
        self._ending: Stopped | UserError | None = None

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of batches that the reader finds itself, in the first worker.

        Raises:
            UserError: The model cannot be loaded, or the worker died.
            Stopped: The run is to end.
        """
        worker = self._start()
        while True:
            self._check()
            if not worker.connection.poll(_LOOK):
                continue
            kind, answer = worker.receive()
            if kind == "more":
                worker.send("sizes")
            elif kind == "sizes":
                sizes: dict[str, int] = answer
                return sizes
            elif kind == "died":
                raise UserError(f"a worker process {answer} while it loaded the model")
            elif kind == "failed":
                raise UserError(answer)

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields what came of each order; see `Executor`."""
        self._orders, self._ending = iter(orders), None
        self._hand_out()
        while self._has_orders(1) or any(worker.orders for worker in self._workers):
            yield from self._look(report)
            self._hand_out()
        if self._ending:
            raise self._ending

    # -- orders ------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        """Gives orders to workers that wait; for more of them, starts more workers."""
        if self._ending:
            self._queue.clear()
            return
        for worker in self._workers:
            if worker.waits and self._has_orders(1):
                order = self._queue.popleft()
                forget_deadline(deadline_of(self._attempts(order.shard.number)))
                worker.give(order)
            elif worker.waits and worker.orders:
                worker.send(None)  # it finishes the shards that it has open
        starting = sum(not (worker.waits or worker.orders) for worker in self._workers)
        while len(self._workers) < self.workers and self._has_orders(starting + 1):
            self._start()
            starting += 1

    def _has_orders(self, count: int) -> bool:
        """Says whether so many orders wait, and takes them if there are any."""
        if self._ending:
            return False
        self._queue.extend(itertools.islice(self._orders, max(0, count - len(self._queue))))
        return len(self._queue) >= count

    def _start(self) -> _Worker:
        gpus = [worker.gpu for worker in self._workers]
        gpu = min(visible_gpus(), key=gpus.count, default=None)
        try:
            worker = _Worker(self._spec, self._placement, gpu)
        except OSError as error:
            raise UserError(
                f"a worker process could not start: {error.strerror}; give fewer --workers, or"
                " raise the limit (ulimit)"
            ) from error
        self._workers.append(worker)
        return worker

    # -- answers -----------------------------------------------------------------------------

    def _look(self, report: Callable[[ProgressCounts], None]) -> Iterator[ShardResult]:
        """Takes what workers say, if any of them says anything soon."""
        ready = wait([worker.connection for worker in self._workers], _LOOK)
        for worker in [worker for worker in self._workers if worker.connection in ready]:
            kind, answer = worker.receive()
            if kind == "progress":
                self._or_end(lambda counts=answer: report(counts))  # type: ignore[misc]
            elif kind == "result":
                yield self._result(worker, answer)
            elif kind == "died":
                yield from self._died(worker, answer)
            elif kind == "failed":
                self._end(UserError(answer))
        for worker in self._workers:
            if any(is_overdue(deadline_of(self._attempts(shard))) for shard in worker.orders):
                worker.end()  # which the next look finds dead
        self._or_end(self._check)

    def _result(self, worker: _Worker, result: ShardResult) -> ShardResult:
        self._died_idle = 0
        worker.orders.pop(result.shard, None)
        if result.outcome == "failed":
            self._end(UserError(result.error))
        return result

    def _died(self, worker: _Worker, cause: str) -> Iterator[ShardResult]:
        """Hands out again what a worker was at."""
        self._workers.remove(worker)
        worker.end()
        self._died_idle += not worker.orders
        if self._died_idle == TRIES:
            self._end(
                UserError(
                    f"a worker process {cause} before it had begun a shard, {TRIES} times; what it"
                    " said stands above; --workers 0 does its work in this process"
                )
            )
        self._queue.extendleft(replace(o, cause=cause) for o in reversed(worker.orders.values()))
        for shard in worker.orders:
            yield ShardResult(shard, outcome="died", worker=worker.name, error=cause)

    def _or_end(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Stopped as reason:
            self._end(reason)

    def _end(self, reason: Stopped | UserError) -> None:
        """Has every worker end after what it is reading; the first reason is the one to tell."""
        if self._ending is None:
            self._ending = reason
            self._queue.clear()
            for worker in self._workers:
                worker.send("stop")


class _Worker:
    """A process beside this one that works at shards.

    Attributes:
        gpu: Name of its GPU; None if it has none.
        orders: Orders that it has not answered for, by their shards.
        waits: Whether it has asked for an order and has none.
    """

    def __init__(self, spec: bytes, placement: Placement, gpu: str | None) -> None:
        """Starts the process.

        Raises:
            OSError: It cannot be started.
        """
        self.gpu = gpu
        self.orders: dict[int, ShardOrder] = {}
        self.waits = False
        # On a busy machine torch's two threads spun: 47 tokens a second fell to 1.6 (decision 4).
        variables = {"OMP_NUM_THREADS": str(placement.threads), "OMP_WAIT_POLICY": "PASSIVE"}
        if gpu is not None:
            variables["CUDA_VISIBLE_DEVICES"] = gpu
        self._process = ChildProcess("leporello.executors.pool_worker:main", variables)
        self.name = f"{self._process.pid}@{platform.node()}"
        self.connection = self._process.connection
        self.end = self._process.end
        self._write(dump((placement.worker_bytes, spec)))

    def give(self, order: ShardOrder) -> None:
        """Gives it a shard."""
        self.orders[order.shard.number] = order
        self.send(order)

    def send(self, message: object) -> None:
        """Sends an order, None for no more of them now, or a word."""
        self.waits = False
        self._write(dump(message))

    def receive(self) -> tuple[str, Any]:
        """Returns what it says, or how it died."""
        try:
            kind, answer = load(self.connection.recv_bytes())
        except (EOFError, OSError):
            return "died", self._process.cause()
        except Exception:  # a stage has written to the socket
            self.end()
            return "died", "sent what no worker of Leporello's says"
        self.waits = kind == "more"
        return kind, answer

    def _write(self, message: bytes) -> None:
        with suppress(ConnectionError):  # it is gone, as receiving will show
            self.connection.send_bytes(message)
