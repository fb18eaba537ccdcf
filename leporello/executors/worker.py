"""What works at shards, in whichever process: takes orders, and yields what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

from leporello.cache.store import collected
from leporello.core.calls.budget import Ledger
from leporello.core.calls.contracts import batching_of, load_models
from leporello.core.errors import BudgetSpentError, Stopped, UserError
from leporello.core.protocols import CancelsReads, SharesLimits
from leporello.engine.attempts import AttemptLog
from leporello.engine.progress import ProgressCounts
from leporello.engine.reading import ReadStatistics, WindowReaders, all_sizes
from leporello.engine.slots import Slots
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pipelines import Pipelines
from leporello.executors.selectors import Selectors
from leporello.executors.shard_run import ShardRun


class Reporter:
    """The listener of a worker's engines: sums up what they do, and reports it now and then.

    Attributes:
        report: Function that receives the progress since the last report.
    """

    def __init__(
        self,
        report: Callable[[ProgressCounts], None],
        check: Callable[[], None],
        every: float = 0.2,
    ) -> None:
        """Reports nothing yet.

        Args:
            report: Function that receives the progress since the last report.
            check: Function that is called before each step; raises `Stopped` if the run is to end.
            every: Seconds between reports at least.
        """
        self.report, self._check, self._every = report, check, every
        self._progressed, self._reported = ProgressCounts(), 0.0
        self._tokens: dict[int, int] = {}

    def before_step(self) -> None:
        """See `Listener`."""
        self._check()

    def document(self) -> None:
        """See `Listener`."""
        self._progressed.documents += 1
        self.flush(self._every)

    def example(self, *, failed: bool = False) -> None:
        """See `Listener`."""
        self._progressed.examples += 1
        self._progressed.failed += failed
        self.flush(0.0 if failed else self._every)

    def reading(self, reads: int) -> None:
        """See `Listener`."""
        self._progressed.reading = reads
        self.flush(self._every)

    def has_read(self, statistics: ReadStatistics) -> None:
        """See `Listener`."""
        tokens = statistics.input_tokens + statistics.output_tokens
        self._progressed.tokens += tokens - self._tokens.get(id(statistics), 0)
        self._tokens[id(statistics)] = tokens
        self._progressed.reading = 0

    def flush(self, after: float = 0.0) -> None:
        """Reports, if the last time was so many seconds ago."""
        if (now := time.monotonic()) - self._reported >= after:
            self._reported = now
            progressed, self._progressed = self._progressed, ProgressCounts()
            self.report(progressed)


class ShardWorker:
    """Works at shards of one batch.

    Attributes:
        pipelines: Pipelines of the batch.
    """

    def __init__(
        self,
        spec: BatchSpec,
        reporter: Reporter,
        *,
        logs_attempts: bool = True,
    ) -> None:
        """Builds the pipelines; models load on first use.

        Args:
            spec: The batch that is to be run.
            reporter: Reporter that is told of progress.
            logs_attempts: Whether what is begun is written down; where the driver dies with the
                worker, no death can count.

        Raises:
            UserError: The source of a class is not what the run began with.
        """
        self.pipelines = Pipelines(spec)
        self._reporter, self._logs = reporter, logs_attempts
        self._open: list[ShardRun] = []
        self._opening: int | None = None
        self._spent: dict[str, Ledger] = {}
        self._resources = ExitStack()
        self._stages = self.pipelines.all[0].stages  # whose readers are those of all
        slots = WindowReaders(self._stages).slots
        timeout = spec.limits.example_timeout
        self._slots = self._resources.enter_context(Slots(slots, timeout)) if slots else None
        self._selectors = self._resources.enter_context(Selectors(spec)) if spec.selectors else None

    def sizes(self) -> dict[str, int]:
        """Returns the sizes of batches that readers find themselves; their models are loaded.

        Raises:
            UserError: A model cannot be loaded.
        """
        for reader in self._stages.readers.values():
            if batching_of(reader):
                load_models(reader)
        return all_sizes(self._stages)

    def run(self, orders: Iterator[ShardOrder]) -> Iterator[ShardResult]:
        """Yields what came of each order; one that ends with an error is the last.

        Args:
            orders: Shards that are to be worked at; another one is taken when there is room for it.
        """
        try:
            for order in orders:
                yield from self._begin(order)
            while self._open:
                yield from self._wait()
        except Stopped as reason:
            yield from self._left("stopped", str(reason))
        except BudgetSpentError as error:
            yield from self._left("spent", str(error))
        except (UserError, OSError) as error:
            yield from self._left("failed", _told(error))
        finally:
            for run in self._open:
                run.close()
            self._open.clear()
            with suppress(Stopped):  # which has been told
                self._reporter.flush()

    def close(self) -> None:
        """Ends what selects or reads beside this thread."""
        for reader in self._stages.readers.values():
            if isinstance(reader, CancelsReads):
                reader.cancel()
        self._resources.close()

    def _begin(self, order: ShardOrder) -> Iterator[ShardResult]:
        """Works at a shard; with slots to fill, until another one may be begun."""
        self._opening = order.shard.number
        for role, budget in order.budgets.items():
            self._stages.readers[role].share_limits(budget.workers, budget.share)
        run = ShardRun(self.pipelines, order, self._reporter, self._log(order), self._slots)
        self._open.append(run)
        self._opening = None
        run.admit(self._selectors)
        if self._slots is None:
            yield self._finish(run)
            return
        yield from self._finished()
        while not self._slots.has_room:
            yield from self._wait()

    def _wait(self) -> Iterator[ShardResult]:
        """Waits for replies, and finishes the shards that have all of theirs."""
        assert self._slots is not None
        self._reporter.before_step()
        if self._slots.waiting:
            self._slots.wait()
        yield from self._finished()

    def _finished(self) -> Iterator[ShardResult]:
        for run in [run for run in self._open if run.is_idle]:
            yield self._finish(run)

    def _finish(self, run: ShardRun) -> ShardResult:
        result = run.finish()
        result.spent, result.reused = self._newly_spent(), collected()
        self._open.remove(run)
        self._reporter.flush()  # what is done is told before that it is done
        return result

    def _left(self, outcome: str, error: str) -> Iterator[ShardResult]:
        """Yields what became of shards that are left as they are."""
        if self._slots is not None:
            self._slots.drain()  # what is begun will be answered, and paid
        results = [run.result(outcome, error) for run in self._open]
        if self._opening is not None:
            results.append(ShardResult(self._opening, outcome=outcome, error=error))
        for result in results:
            result.spent = self._newly_spent()
            yield result

    def _newly_spent(self) -> dict[str, Ledger]:
        """Returns what readers have spent since the last call, by role."""
        earlier = self._spent
        readers = self._stages.readers.items()
        self._spent = {role: one.spent for role, one in readers if isinstance(one, SharesLimits)}
        return {role: spent - earlier.get(role, Ledger()) for role, spent in self._spent.items()}

    def _log(self, order: ShardOrder) -> AttemptLog | None:
        if not self._logs:
            return None
        path = self.pipelines.all[0].files.attempts(order.shard.number)
        return AttemptLog(path, self.pipelines.spec.driver)


def _told(error: UserError | OSError) -> str:
    if isinstance(error, UserError):
        return str(error)
    name = error.filename or "a file of the run"
    return (
        f"{name}: cannot be written: {error.strerror}; the stores hold all that is finished: make"
        " room, and run the same command again"
    )
