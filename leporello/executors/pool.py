"""Pool of workers that run shards in other processes of this machine, or of a cluster."""

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from typing import Any, Protocol, Self

from leporello.config.placement import Placement, visible_gpus
from leporello.core.errors import Stopped, UserError
from leporello.engine.failures import TRIES
from leporello.engine.progress import ProgressCounts
from leporello.executors.channel import dump, load
from leporello.executors.child_process import INTERVAL, WorkerProcess
from leporello.executors.interface import Death, JobGroupSpec, ShardOrder, ShardResult

_CONTENTS: Mapping[str, type] = {
    "more": str, "progress": ProgressCounts, "result": ShardResult, "failed": str, "died": Death,
}  # fmt: skip


class WorkerLink(Protocol):
    """Connection to one worker, which sends the messages of `worker`."""

    def send(self, message: bytes) -> None:
        """Sends a pickled message; ignores that the worker has died."""

    def receive(self) -> bytes:
        """Returns the next pickled message; if the worker has died, the cause of its death."""

    def end(self) -> object:
        """Kills the worker."""


@dataclass(eq=False)
class PoolWorker:
    """State of a worker of a pool."""

    link: WorkerLink  # connection to the worker
    name: str = ""  # process and machine; empty until the worker has requested an order
    orders: dict[int, ShardOrder] = field(default_factory=dict)  # orders without a result, by shard
    waits: bool = False  # whether the worker waits for an order

    def send(self, message: object) -> None:
        """Sends an order, a command, or None if there are no more orders now."""
        self.waits = False
        self.link.send(dump(message))

    def receive(self) -> tuple[str, Any]:
        """Returns the kind and content of the next message, or the cause of the worker's death."""
        try:
            kind, answer = load(self.link.receive())
            is_valid = isinstance(answer, _CONTENTS[kind])
        except Exception:  # a stage may write to the socket
            is_valid = False
        if not is_valid or (kind == "result" and answer.shard not in self.orders):
            return "died", Death("sent an invalid message")
        self.waits = kind == "more"
        if self.waits:
            self.name = answer
        return kind, answer


class Workplace:
    """Starts and watches the workers of a pool."""

    workers: int  # maximum number of workers
    tries: int  # number of consecutive workers that may die before they have started a shard
    advice: str  # advice for the user after that many deaths

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:
        """Starts a worker, in addition to others."""
        raise NotImplementedError

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """Returns the links with a message; waits for one, but only for a short time."""
        raise NotImplementedError

    def close(self) -> None:
        """Releases the resources of the place, after its workers have ended."""


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
        try:
            link = WorkerProcess(self._spec, self._placement.threads, variables)
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


class Pool:
    """Runs shards in workers, which end with this context manager; replaces workers that die.

    A worker requests one order at a time. If it dies, its unfinished orders are sent again, and
    the death counts against the operation that it started last.
    """

    def __init__(self, place: Workplace, check: Callable[[], None]) -> None:
        """Prepares the pool; workers start with the first orders. See `executor_for`."""
        self._place, self._check, self.workers = place, check, place.workers
        self._workers: list[PoolWorker] = []
        self._orders: Iterator[ShardOrder] = iter(())
        self._queue: deque[ShardOrder] = deque()
        self._idle_deaths = 0  # consecutive workers that died without an order
        self._ending: Stopped | UserError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.link.end()
        self._place.close()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields results as they arrive; a shard has an additional result per worker that died.

        Orders are requested as workers become free. An exception from `report` ends the run.
        """
        self._orders, self._ending = iter(orders), None
        self._send_orders()
        while self._has_orders(1) or any(worker.orders for worker in self._workers):
            yield from self._receive(report)
            self._send_orders()
        if self._ending:
            raise self._ending

    # -- orders ------------------------------------------------------------------------------

    def _send_orders(self) -> None:
        """Sends orders to waiting workers, and starts more workers for further orders."""
        if self._ending:
            return
        for worker in self._workers:
            if worker.waits and self._has_orders(1):
                order = self._queue.popleft()
                worker.orders[order.shard.number] = order
                worker.send(order)
            elif worker.waits and worker.orders:
                worker.send(None)  # a worker with slots finishes its open shards
        # Workers that are loading will ask soon; without them, each poll would start one more.
        starting = sum(not (worker.waits or worker.orders) for worker in self._workers)
        while len(self._workers) < self.workers and self._has_orders(starting + 1):
            link = self._place.start([worker.link for worker in self._workers])
            self._workers.append(PoolWorker(link))
            starting += 1

    def _has_orders(self, count: int) -> bool:
        """Returns whether `count` orders are available, and queues them."""
        if not self._ending:
            missing = itertools.islice(self._orders, max(0, count - len(self._queue)))
            self._call(lambda: self._queue.extend(missing))
        return not self._ending and len(self._queue) >= count

    # -- messages ----------------------------------------------------------------------------

    def _receive(self, report: Callable[[ProgressCounts], None]) -> Iterator[ShardResult]:
        """Handles messages of workers that arrive within a short time."""
        ready = self._place.ready([worker.link for worker in self._workers])
        for worker in [worker for worker in self._workers if worker.link in ready]:
            kind, answer = worker.receive()
            if kind == "progress":
                self._call(partial(report, answer))
            elif kind == "result":
                self._idle_deaths = 0
                order = worker.orders.pop(answer.shard)
                if answer.outcome == "failed":
                    self._end(UserError(answer.error))
                elif answer.outcome == "spent":  # last, with the rest of the budget
                    self._orders = itertools.chain(self._orders, [order])
                yield answer
            elif kind == "died":
                yield from self._replace(worker, answer)
            elif kind == "failed":
                self._end(UserError(answer))
        self._call(self._check)

    def _replace(self, worker: PoolWorker, death: Death) -> Iterator[ShardResult]:
        """Removes one dead worker, and queues its orders again."""
        self._workers.remove(worker)
        worker.link.end()
        # Deaths without an order count against no example, so a limit here must end the restarts.
        self._idle_deaths += not worker.orders
        if self._idle_deaths == self._place.tries:
            fact = f"{death.cause} before it started a shard, {self._idle_deaths} times"
            self._end(UserError(f"a worker process {fact}; {self._place.advice}"))
        if not self._ending:
            is_alone = len(worker.orders) == 1
            # Reversed and in front of the queue, so that shards keep their order.
            self._queue.extendleft(
                order.after(death, is_alone=is_alone) for order in reversed(worker.orders.values())
            )
        for shard in worker.orders:
            yield ShardResult(shard, outcome="died", worker=worker.name, error=death.cause)

    def _call(self, action: Callable[[], None]) -> None:
        """Calls a function whose exception ends the run."""
        try:
            action()
        except (Stopped, UserError) as reason:
            self._end(reason)

    def _end(self, reason: Stopped | UserError) -> None:
        """Stops every worker after its current read; only the first reason is reported."""
        # Later errors follow from the first one, such as workers that stop.
        if self._ending is None:
            self._ending = reason
            self._queue.clear()
            for worker in self._workers:
                worker.send("stop")
