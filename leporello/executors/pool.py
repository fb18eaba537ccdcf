"""Shards worked at in other processes, on this machine or on a cluster."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from leporello.core.errors import Stopped, UserError
from leporello.engine.limits import forget_deadline
from leporello.engine.progress import ProgressCounts
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pickling import dump, load


class WorkerLink(Protocol):
    """The way to one worker, which says what `pool_worker` says."""

    def send(self, message: bytes) -> None:
        """Sends what was dumped; a worker that is gone gets nothing."""
        ...

    def receive(self) -> bytes:
        """Returns what it says, dumped; of one that is gone, how it died."""
        ...

    def end(self) -> object:
        """Ends the worker, whatever it is at."""
        ...


@dataclass(eq=False)
class PoolWorker:
    """A worker as a pool knows it.

    Attributes:
        link: The way to it.
        name: Its process and machine; empty until it has asked for an order.
        orders: Orders that it has not answered for, by their shards.
        waits: Whether it has asked for an order and has none.
    """

    link: WorkerLink
    name: str = ""
    orders: dict[int, ShardOrder] = field(default_factory=dict)
    waits: bool = False

    def give(self, order: ShardOrder) -> None:
        """Gives it a shard."""
        self.orders[order.shard.number] = order
        self.send(order)

    def send(self, message: object) -> None:
        """Sends an order, None for no more of them now, or a word."""
        self.waits = False
        self.link.send(dump(message))

    def receive(self) -> tuple[str, Any]:
        """Returns what it says, or how it died."""
        try:
            kind, answer = load(self.link.receive())
        except Exception:  # a stage has written to the socket
            return "died", "sent what no worker of Leporello's says"
        self.waits = kind == "more"
        if self.waits:
            self.name = answer
        return kind, answer


class Workplace(Protocol):
    """Where the workers of a pool are; a context that lasts as long as they do.

    Attributes:
        tries: Number of workers in a row that may die before they have begun anything.
        advice: What a user may do about that.
    """

    tries: int
    advice: str

    def __enter__(self) -> object: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def workers(self) -> int:
        """Number of workers that there may be."""
        ...

    def start(self, others: Sequence[WorkerLink]) -> WorkerLink:
        """Starts a worker beside others.

        Raises:
            UserError: It cannot be started.
        """
        ...

    def ready(self, links: Sequence[WorkerLink]) -> Sequence[WorkerLink]:
        """Returns those that say something, as soon as one does, or after some time none."""
        ...

    def watch(self, workers: Sequence[PoolWorker]) -> None:
        """Looks after the workers now and then.

        Raises:
            UserError: No worker can be there any more.
        """
        ...


class Pool:
    """Works at shards in workers; one that dies is replaced. A context that ends them.

    A worker asks for each shard. What it is given, it answers for: when it dies, its shards are
    handed out again, and what it had begun last is blamed (`AttemptLog`).
    """

    def __init__(self, spec: BatchSpec, place: Workplace, check: Callable[[], None]) -> None:
        """Starts none before there is anything to do; see `executor_for`."""
        self._deadline, self._place, self._check = spec.deadline, place, check
        self._workers: list[PoolWorker] = []
        self._orders: Iterator[ShardOrder] = iter(())
        self._queue: deque[ShardOrder] = deque()
        self._died_idle = 0  # in a row
        self._ending: Stopped | UserError | None = None

    @property
    def workers(self) -> int:
        """Number of workers that there may be."""
        return self._place.workers

    def __enter__(self) -> Pool:
        self._place.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        for worker in self._workers:
            worker.link.end()
        self._place.__exit__(*raised)

    def sizes(self) -> Mapping[str, int]:
        """Returns the sizes of batches that the reader finds itself, in the first worker.

        Raises:
            UserError: The model cannot be loaded, or the worker died.
            Stopped: The run is to end.
        """
        worker = self._start()
        while True:
            self._check()
            self._place.watch(self._workers)
            if not self._place.ready([worker.link]):
                continue
            kind, answer = worker.receive()
            if kind == "more":
                worker.send("sizes")
            elif kind == "sizes":
                sizes: Mapping[str, int] = answer
                return sizes
            elif kind == "died":
                raise UserError(f"a worker process {answer} while it loaded the model")
            elif kind == "failed":
                raise UserError(answer)

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields what came of each order, in any order; of one whose worker died, each time.

        Args:
            orders: Shards that are to be worked at; taken as there is room.
            report: Function that is told of progress; what it raises ends the run.

        Raises:
            UserError: A mistake of the user's; what is finished stays finished.
            Stopped: The run is to end.
        """
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
            return
        for worker in self._workers:
            if worker.waits and self._has_orders(1):
                order = self._queue.popleft()
                forget_deadline(self._deadline(order.shard.number))
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

    def _start(self) -> PoolWorker:
        worker = PoolWorker(self._place.start([worker.link for worker in self._workers]))
        self._workers.append(worker)
        return worker

    # -- answers -----------------------------------------------------------------------------

    def _look(self, report: Callable[[ProgressCounts], None]) -> Iterator[ShardResult]:
        """Takes what workers say, if any of them says anything soon."""
        ready = self._place.ready([worker.link for worker in self._workers])
        for worker in [worker for worker in self._workers if worker.link in ready]:
            kind, answer = worker.receive()
            if kind == "progress":
                self._or_end(lambda counts=answer: report(counts))  # type: ignore[misc]
            elif kind == "result":
                yield self._result(worker, answer)
            elif kind == "died":
                yield from self._died(worker, answer)
            elif kind == "failed":
                self._end(UserError(answer))
        self._or_end(lambda: self._place.watch(self._workers))
        self._or_end(self._check)

    def _result(self, worker: PoolWorker, result: ShardResult) -> ShardResult:
        self._died_idle = 0
        worker.orders.pop(result.shard, None)
        if result.outcome == "failed":
            self._end(UserError(result.error))
        return result

    def _died(self, worker: PoolWorker, cause: str) -> Iterator[ShardResult]:
        """Hands out again what a worker was at."""
        self._workers.remove(worker)
        worker.link.end()
        self._died_idle += not worker.orders
        if self._died_idle == self._place.tries:
            told = f"a worker process {cause} before it had begun a shard, {self._died_idle} times"
            self._end(UserError(f"{told}; {self._place.advice}"))
        if not self._ending:
            again = (replace(order, cause=cause) for order in reversed(worker.orders.values()))
            self._queue.extendleft(again)
        for shard in worker.orders:
            yield ShardResult(shard, outcome="died", worker=worker.name, error=cause)

    def _or_end(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (Stopped, UserError) as reason:
            self._end(reason)

    def _end(self, reason: Stopped | UserError) -> None:
        """Has every worker end after what it is reading; the first reason is the one to tell."""
        if self._ending is None:
            self._ending = reason
            self._queue.clear()
            for worker in self._workers:
                worker.send("stop")
