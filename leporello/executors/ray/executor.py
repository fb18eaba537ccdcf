"""Shards on a Ray cluster: Ray Data's `map_batches` over rows that are shards.

Ray Data schedules, restarts actors whose process or node is gone, and calls them again. What it
gives up is begun anew as another dataset, until a round of it finishes nothing.
"""

from __future__ import annotations

import logging
import queue
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from leporello.config import Pipeline
from leporello.config.placement import Placement
from leporello.core.errors import Stopped, UserError
from leporello.engine.progress import ProgressCounts
from leporello.engine.reading import WindowReaders
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pickling import dump, load
from leporello.executors.ray.actor import ActorMessage, ShardActor, find_sizes, token_of
from leporello.executors.ray.capacity import (
    CapacityWatch,
    check_capacity,
    resolved,
    worker_resources,
)
from leporello.executors.ray.cluster import connected, free_resources, nodes, resources
from leporello.executors.ray.environment import WorkerEnvironment

_LOOK = 0.2  # seconds between looks at a wish to stop
_RETRIES = 20  # of a shard in one round: three deaths find a poison window, more its read
_SHARDS_A_ROW = 32  # at most, for readers with slots: at a row's end they run empty

_log = logging.getLogger("leporello")


class RayExecutor:
    """Works at shards in actors of a Ray cluster; see `Executor`."""

    def __init__(self, spec: BatchSpec, placement: Placement, check: Callable[[], None]) -> None:
        """Connects to nothing yet; see `executor_for`."""
        self._spec, self._placement, self._check = spec, placement, check
        self._token = token_of(spec)
        self._resources = ExitStack()
        self.workers = 1  # until the cluster is known

    def __enter__(self) -> RayExecutor:
        """Connects to Ray.

        Raises:
            UserError: There is no such cluster, or no node of it is large enough.
        """
        with ExitStack() as opening:
            opening.enter_context(connected(self._placement, self._spec))
            self._placement, self.workers = resolved(self._placement, resources())
            check_capacity(self._placement, nodes())
            self._token.touch()
            opening.callback(self._token.unlink, missing_ok=True)
            threads = str(self._placement.threads)
            self._setup = WorkerEnvironment.of(self._spec), dump(self._spec)
            variables = {"OMP_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}
            if not self._placement.worker_gpus:
                variables["CUDA_VISIBLE_DEVICES"] = ""  # a GPU that nobody reserved is another's
            self._options: dict[str, Any] = {
                **worker_resources(self._placement),
                "runtime_env": {"env_vars": variables},  # before anything computes
            }
            self._resources = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def sizes(self) -> Mapping[str, int]:
        """Returns the sizes of batches that the reader finds itself, on a worker's resources.

        Raises:
            UserError: The model cannot be loaded, or the worker died.
            Stopped: The run is to end.
        """
        import ray

        answer = ray.remote(find_sizes).options(**self._options, max_calls=1).remote(*self._setup)
        room = CapacityWatch(self._placement, 1, nodes, free_resources)
        while not ray.wait([answer], timeout=_LOOK)[0]:
            self._check()
            room.look()
        try:
            sizes: Mapping[str, int] | str = load(ray.get(answer))
        except ray.exceptions.RayError as error:
            raise UserError(f"a worker on Ray died while it loaded the model: {error}") from error
        if isinstance(sizes, str):
            raise UserError(sizes)
        return sizes

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields what came of each order; see `Executor`."""
        pending = {order.shard.number: dump(order) for order in orders}
        while pending:
            before = len(pending)
            dataset = _Dataset(self._rows(pending), self._setup, self._options, self.workers)
            yield from self._follow(dataset, pending, report)
            if len(pending) == before:
                raise UserError(
                    f"workers on Ray are lost before they finish any of the {before} shards that"
                    f" are left ({dataset.reason}); `ray status` shows the cluster, and the same"
                    " command goes on"
                )
            if pending:
                _log.warning(
                    "Ray gave up (%s); %d shards are begun anew", dataset.reason, len(pending)
                )

    def _rows(self, pending: Mapping[int, bytes]) -> list[list[bytes]]:
        """Returns the orders of each row: one, or for a reader with slots several."""
        orders = [*pending.values()]
        stages = Pipeline.of({key: spec.build() for key, spec in self._spec.stages[0].items()})
        several = len(orders) // (2 * self.workers) if WindowReaders(stages).slots else 1
        size = max(1, min(_SHARDS_A_ROW, several))
        return [orders[start : start + size] for start in range(0, len(orders), size)]

    def _follow(
        self, dataset: _Dataset, pending: dict[int, bytes], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields results as they come, until there are no more, or the run is to end."""
        ending: Stopped | UserError | None = None
        room = CapacityWatch(self._placement, dataset.workers, nodes, free_resources)
        under_way = set[int]()
        with dataset:
            for row, message in dataset.messages():
                progressed = None
                if isinstance(message, str):
                    progressed = ProgressCounts()
                    room.taken.add(message)
                    under_way.update(() if ending else (row,))
                elif message:
                    progressed, result = message
                    if result.outcome in ("finished", "spent"):
                        pending.pop(result.shard, None)
                    elif result.outcome == "failed":
                        ending = ending or self._end(UserError(result.error))
                    yield result
                else:
                    under_way.discard(row)
                room.look()
                try:
                    report(progressed) if progressed else self._check()
                except (Stopped, UserError) as reason:
                    ending = ending or self._end(reason)
                # What workers are reading is to be read; at a URL they see no wish to end.
                if ending and (not under_way or self._spec.remote):
                    break
        if ending:
            raise ending

    def _end(self, reason: Stopped | UserError) -> Stopped | UserError:
        """Has every worker end after what it is reading."""
        self._token.unlink(missing_ok=True)
        return reason


class _Dataset:
    """Rows of orders that Ray Data hands to actors; a context that ends with them.

    Attributes:
        workers: Number of actors.
        reason: Message of why Ray Data gave up; empty if it did not.
    """

    def __init__(
        self,
        rows: Sequence[Sequence[bytes]],
        setup: tuple[WorkerEnvironment, bytes],
        options: dict[str, Any],
        workers: int,
    ) -> None:
        import ray.data

        self.workers = min(workers, len(rows))
        self.reason = "Ray says nothing"
        self._said: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = threading.Event()
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what ends it is told by us
        items = [{"row": n, "orders": dump(orders)} for n, orders in enumerate(rows)]
        source = ray.data.from_items(items, override_num_blocks=len(items))
        pool = ray.data.ActorPoolStrategy(
            min_size=self.workers,
            max_size=self.workers,
            max_tasks_in_flight_per_actor=1,
            enable_true_multi_threading=True,  # so it is the main thread, where time-outs work
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `max_task_retries` has no other place yet
            self._dataset = source.map_batches(
                ShardActor,
                fn_constructor_args=setup,
                batch_size=1,
                compute=pool,
                max_task_retries=_RETRIES,
                **options,
            )
        context = self._dataset.context
        context.execution_no_progress_timeout_s = -1  # a shard of novels takes its time
        context.target_max_block_size = 1  # what is said comes at once
        context.enable_progress_bars = False
        context.memory_usage_poll_interval_s = None

    def __enter__(self) -> _Dataset:
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(timeout=5.0)  # Ray Data ends its actors

    def messages(self) -> Iterator[tuple[int, ActorMessage]]:
        """Yields what actors say, and now and then that nobody said anything, until all is said."""
        while True:
            try:
                message = self._said.get(timeout=_LOOK)
            except queue.Empty:
                yield -1, None
                continue
            if message is None:
                return
            yield load(message)

    def _listen(self) -> None:
        try:
            for row in self._dataset.iter_rows():
                self._said.put(row["said"])
                if self._ended.is_set():
                    return
        except Exception as error:  # Ray's own are many
            self.reason = str(error).strip().partition("\n")[0]
        finally:
            self._said.put(None)
