"""Worker that runs shards in any kind of process: receives orders and yields results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from time import monotonic  # by name: a stage may replace functions of `time`

from leporello.cache.store import collected
from leporello.core.calls.budget import Ledger
from leporello.core.calls.contracts import batching_of, load_models
from leporello.core.errors import BudgetSpentError, Stopped, UserError
from leporello.core.protocols import CancelsReads, SharesLimits
from leporello.engine.attempts import AttemptLog
from leporello.engine.progress import ProgressCounts
from leporello.engine.reading import BatchReaders, ReadStatistics, all_sizes
from leporello.engine.slots import Slots
from leporello.executors.interface import JobGroupSpec, ShardOrder, ShardResult
from leporello.executors.pipelines import Pipelines
from leporello.executors.selectors import Selectors
from leporello.executors.shard_run import ShardRun


class Reporter:
    """Listener to a worker's engines, which sums up their progress and reports it regularly.

    Attributes:
        report: Function that receives the progress since the last report.
    """

    def __init__(
        self,
        report: Callable[[ProgressCounts], None],
        check: Callable[[], None],
        # Five reports a second look smooth; one for each example would slow down short ones.
        every: float = 0.2,
    ) -> None:
        """Prepares the reporter.

        Args:
            report: Function that receives the progress since the last report.
            check: Function that is called before each read; raises `Stopped` to end the run.
            every: Minimum number of seconds between reports.
        """
        self.report, self._check, self._every = report, check, every
        self._counts, self._reported = ProgressCounts(), 0.0
        self._tokens: dict[int, int] = {}

    def before_step(self) -> None:
        """See `Listener`."""
        self._check()

    def document(self) -> None:
        """See `Listener`."""
        self._counts.documents += 1
        self.flush(self._every)

    def example(self, *, failed: bool = False) -> None:
        """See `Listener`."""
        self._counts.examples += 1
        self._counts.failed += failed
        # Failures at once, so users can stop early if everything fails.
        self.flush(0.0 if failed else self._every)

    def reading(self, reads: int) -> None:
        """See `Listener`."""
        self._counts.reading = reads
        self.flush(self._every)

    def has_read(self, statistics: ReadStatistics) -> None:
        """See `Listener`."""
        tokens = statistics.input_tokens + statistics.output_tokens
        self._counts.tokens += tokens - self._tokens.get(id(statistics), 0)
        self._tokens[id(statistics)] = tokens
        self._counts.reading = 0

    def flush(self, after: float = 0.0) -> None:
        """Sends a report if the last one is at least `after` seconds old."""
        if (now := monotonic()) - self._reported >= after:
            self._reported = now
            counts, self._counts = self._counts, ProgressCounts()
            self.report(counts)


class ShardWorker:
    """Runs shards of one batch.

    Attributes:
        pipelines: Pipelines of the batch.
    """

    def __init__(
        self,
        spec: JobGroupSpec,
        reporter: Reporter,
        connected: Callable[[], None] | None = None,
    ) -> None:
        """Builds the pipelines; models load on first use.

        Args:
            spec: Group of jobs to run.
            reporter: Reporter of the progress.
            connected: Function that is called before each operation, and ends a process without a
                driver. None in the driver's process, which needs no log of operations either: all
                of it dies together.

        Raises:
            UserError: The source of a class has changed since the run started.
        """
        self.pipelines = Pipelines(spec)
        self._reporter, self._connected = reporter, connected
        self._open_runs: list[ShardRun] = []
        self._opening_shard: int | None = None
        self._spent: dict[str, Ledger] = {}
        self._resources = ExitStack()
        self._stages = self.pipelines.all[0].stages  # all pipelines have the same readers
        # One set of threads for all pipelines and shards: the endpoint sees a constant load. It was
        # busy for 16 % of the time with batches (decision 29).
        slots = BatchReaders(self._stages).slots
        timeout = spec.limits.example_timeout
        self._slots = self._resources.enter_context(Slots(slots, timeout)) if slots else None
        self._selectors = self._resources.enter_context(Selectors(spec)) if spec.selectors else None

    def sizes(self) -> dict[str, int]:
        """Loads the models, and returns the micro-batch sizes that readers determine.

        Raises:
            UserError: A model cannot be loaded.
        """
        for reader in self._stages.readers.values():
            if batching_of(reader):
                load_models(reader)
        return all_sizes(self._stages)

    def run(self, orders: Iterator[ShardOrder]) -> Iterator[ShardResult]:
        """Yields the result of each order; stops after an error.

        Args:
            orders: Shards to run; the next one is requested when there is room for it.
        """
        try:
            for order in orders:
                yield from self._start(order)
            while self._open_runs:
                yield from self._wait()
        except Stopped as reason:
            yield from self._unfinished("stopped", str(reason))
        except BudgetSpentError as error:
            yield from self._unfinished("spent", str(error))
        except (UserError, OSError) as error:
            yield from self._unfinished("failed", _message_of(error))
        finally:
            for run in self._open_runs:
                run.close()
            self._open_runs.clear()
            with suppress(Stopped):  # already reported
                self._reporter.flush()

    def close(self) -> None:
        """Ends the selecting processes, and cancels reads in other threads."""
        for reader in self._stages.readers.values():
            if isinstance(reader, CancelsReads):
                reader.cancel()
        self._resources.close()

    def _start(self, order: ShardOrder) -> Iterator[ShardResult]:
        """Runs a shard; with slots, only until there is room for the next shard."""
        self._opening_shard = order.shard.number
        for role, budget in order.budgets.items():
            self._stages.readers[role].share_limits(budget.workers, budget.share)
        run = ShardRun(self.pipelines, order, self._reporter, self._attempt_log(order), self._slots)
        self._open_runs.append(run)
        self._opening_shard = None
        run.admit(self._selectors)
        # Batches never cross shards, so a second open shard would gain nothing.
        if self._slots is None:
            yield self._finish(run)
            return
        yield from self._finished()
        # The next shard opens while there is room; the last reads of a shard would leave slots
        # empty.
        while not self._slots.has_room:
            yield from self._wait()

    def _wait(self) -> Iterator[ShardResult]:
        """Waits for replies, and finishes shards without waiting examples."""
        assert self._slots is not None
        self._reporter.before_step()
        if self._slots.waiting:
            self._slots.wait()
        yield from self._finished()

    def _finished(self) -> Iterator[ShardResult]:
        for run in [run for run in self._open_runs if run.is_idle]:
            yield self._finish(run)

    def _finish(self, run: ShardRun) -> ShardResult:
        result = run.finish()
        result.spent, result.reused = self._newly_spent(), collected()
        self._open_runs.remove(run)
        self._reporter.flush()  # report counts before the result
        return result

    def _unfinished(self, outcome: str, error: str) -> Iterator[ShardResult]:
        """Yields the results of unfinished shards."""
        if self._slots is not None:
            self._slots.drain()  # started reads will be answered, and cost money
        results = [run.result(outcome, error) for run in self._open_runs]
        if self._opening_shard is not None:
            results.append(ShardResult(self._opening_shard, outcome=outcome, error=error))
        for result in results:
            result.spent = self._newly_spent()
            yield result

    def _newly_spent(self) -> dict[str, Ledger]:
        """Returns the spending of readers since the last call, by role."""
        earlier = self._spent
        readers = self._stages.readers.items()
        self._spent = {role: r.spent for role, r in readers if isinstance(r, SharesLimits)}
        return {role: spent - earlier.get(role, Ledger()) for role, spent in self._spent.items()}

    def _attempt_log(self, order: ShardOrder) -> AttemptLog | None:
        if self._connected is None:
            return None
        path = self.pipelines.all[0].files.attempts(order.shard.number)
        return AttemptLog(path, self.pipelines.spec.driver, self._connected)


def _message_of(error: UserError | OSError) -> str:
    if isinstance(error, UserError):
        return str(error)
    name = error.filename or "a file of the run"
    return (
        f"{name}: cannot be written: {error.strerror}; finished examples are in the stores: free"
        " space, and run the same command to resume"
    )
