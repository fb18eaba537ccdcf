"""Worker that runs shards in any kind of process, and the main function of a worker process."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from os import _exit  # by name: a stage may replace functions of `os`
from traceback import walk_tb
from typing import Any, Self

from leporello.core.calls.budget import Ledger
from leporello.core.calls.contracts import batching_of, load_models
from leporello.core.environment.classes import REMAPPED_PATHS
from leporello.core.errors import BudgetSpentError, Stopped, UserError
from leporello.core.protocols import SharesLimits
from leporello.engine.failures import Phase, be_watched, error_text, set_late
from leporello.engine.progress import Listener, ProgressCounts
from leporello.engine.reading import BatchReaders, batch_sizes
from leporello.engine.slots import Slots
from leporello.executors.channel import Channel, dump, load
from leporello.executors.child_process import SharedMemory, connected
from leporello.executors.interface import (
    FIND_SIZES,
    JobGroupSpec,
    Pipelines,
    ShardOrder,
    ShardResult,
    this_worker,
)
from leporello.executors.selectors import Selectors
from leporello.executors.shard_run import ShardRun

_log = logging.getLogger("leporello")


class ShardWorker:
    """Runs shards of one batch in this process; in the driver it has the interface of `Pool`."""

    workers = 1

    def __init__(
        self,
        spec: JobGroupSpec,
        check: Callable[[], None],
        record: Callable[[int, Phase], None] | None = None,
    ) -> None:
        """Builds the pipelines; models load on first use. For `check` see `executor_for`.

        `record` is called before each operation, with its shard. It is None in the driver's
        process, which nobody survives who could count its death.
        """
        self.pipelines = Pipelines(spec)
        self._listener, self._record = Listener(check=check, every=spec.report_every), record
        self._open_runs: list[ShardRun] = []
        self._spent: dict[str, Ledger] = {}
        self._resources = ExitStack()
        self._stages = self.pipelines.stages[0]  # all pipelines have the same readers
        # One set of threads for all pipelines and shards: the endpoint sees a constant load. It was
        # busy for 16 % of the time with batches (decision 29).
        slots = BatchReaders(self._stages).slots
        timeout = spec.limits.example_timeout
        self._slots = self._resources.enter_context(Slots(slots, timeout)) if slots else None
        self._selectors = self._resources.enter_context(Selectors(spec)) if spec.selectors else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._stages.readers.values():
            if isinstance(reader, SharesLimits):
                reader.cancel()  # in other threads
        self._resources.close()

    def run(
        self, orders: Iterable[ShardOrder], report: Callable[[ProgressCounts], None]
    ) -> Iterator[ShardResult]:
        """Yields results of orders, requested as there is room; see `Pool`.

        Before an error is raised, the unfinished shards have results with its message.
        """
        self._listener.report = report
        try:
            for order in orders:
                yield from self._start(order)
            while self._open_runs:
                yield from self._wait()
        except (Stopped, UserError) as reason:
            yield from self._unfinished(reason)
            raise
        except OSError as error:
            fault = _fault_of(error)
            yield from self._unfinished(fault)
            raise fault from error
        finally:
            for run in self._open_runs:
                run.close()
            self._open_runs.clear()
            set_late(None)  # the worker may wait for its next shard
            with suppress(Stopped):  # already reported
                self._listener.flush()

    def _start(self, order: ShardOrder) -> Iterator[ShardResult]:
        """Runs a shard; with slots, only until there is room for the next shard."""
        slots = None if order.deaths else self._slots
        run = ShardRun(self.pipelines, order, self._listener, slots, self._record)
        self._open_runs.append(run)
        for role, budget in order.budgets.items():
            self._stages.readers[role].share_limits(budget.workers, budget.share)
        run.start(self._selectors)
        # Batches never cross shards, so a second open shard would gain nothing.
        if slots is None:
            yield self._finish(run)
            return
        yield from self._finished()
        # The next shard opens while there is room: a shard's last reads would leave slots empty.
        while not slots.has_room:
            yield from self._wait()

    def _wait(self) -> Iterator[ShardResult]:
        """Waits for replies, and finishes shards without waiting examples."""
        assert self._slots is not None
        self._listener.before_step()
        if self._slots.waiting:
            self._slots.wait()
        yield from self._finished()

    def _finished(self) -> Iterator[ShardResult]:
        for run in [run for run in self._open_runs if run.is_idle]:
            yield self._finish(run)

    def _finish(self, run: ShardRun) -> ShardResult:
        result = run.finish()
        if run.order == FIND_SIZES:
            for reader in filter(batching_of, self._stages.readers.values()):
                load_models(reader)
            result.sizes = batch_sizes(self._stages, self._stages.readers)
        set_late(None)  # the worker may wait for its next shard
        result.spent = self._newly_spent()
        self._open_runs.remove(run)
        self._listener.flush()  # report counts before the result
        return result

    def _unfinished(self, reason: Stopped | UserError) -> Iterator[ShardResult]:
        if self._slots is not None:
            self._slots.drain()  # started reads will be answered, and cost money
        outcomes = {Stopped: "stopped", BudgetSpentError: "spent"}
        for run in self._open_runs:
            result = run.result(outcomes.get(type(reason), "failed"), str(reason))
            result.spent = self._newly_spent()
            yield result

    def _newly_spent(self) -> dict[str, Ledger]:
        earlier = self._spent
        readers = self._stages.readers.items()
        self._spent = {role: r.spent for role, r in readers if isinstance(r, SharesLimits)}
        return {role: spent - earlier.get(role, Ledger()) for role, spent in self._spent.items()}


def _fault_of(error: OSError) -> UserError:
    name = error.filename or "a file of the run"
    return UserError(
        f"{name}: cannot be written: {error.strerror}; finished examples are in the stores: free"
        " space, and run the same command to resume"
    )


def main() -> None:
    """Runs orders until the driver closes the connection."""
    sys.unraisablehook = threading.excepthook = _log_ignored
    try:
        channel = connected()
        sys.path[:], remapped, spec = channel.receive()
        REMAPPED_PATHS.update(remapped)
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


class _DriverConnection:
    """Messages between this worker and its driver."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._memory = channel, SharedMemory(int(sys.argv[2]))

    def run(self, data: bytes) -> None:
        """Requests orders and sends their results, until the driver closes the connection."""
        try:
            spec: JobGroupSpec = load(data)
            worker = ShardWorker(spec, self._check, self._record)
            if (timeout := spec.limits.example_timeout) is not None:
                be_watched(self._memory.late_at, timeout)
        except UserError as error:
            self._send("failed", str(error))
            return
        while True:
            with suppress(Stopped, UserError):  # the results of the open shards have the reason
                for result in worker.run(self._orders(), partial(self._send, "progress")):
                    self._send("result", result)

    def _orders(self) -> Iterator[ShardOrder]:
        while True:
            self._send("more", this_worker())
            message = self._channel.receive()
            if isinstance(message, ShardOrder):
                yield message
            elif message == "stop":
                raise Stopped("")
            else:  # no more orders now: finish the open shards
                return

    def _record(self, shard: int, phase: Phase) -> None:
        # First: a stage that closes the connection ends this process during its own operation.
        self._channel.check()
        self._memory.start(shard, phase)

    def _check(self) -> None:
        if (message := self._channel.take()) is not None and load(message) == "stop":
            raise Stopped("")

    def _send(self, kind: str, content: Any) -> None:  # noqa: ANN401 -- any object
        self._channel.send(dump((kind, content)))
