"""A Ray actor that works at shards; what happens to them is told, never raised."""

from __future__ import annotations

import os
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import Stopped, UserError
from leporello.engine.progress import ProgressCounts
from leporello.executors.interface import BatchSpec, ShardOrder, ShardResult
from leporello.executors.pickling import dump, load
from leporello.executors.ray.cluster import node_id
from leporello.executors.ray.environment import WorkerEnvironment
from leporello.executors.worker import Reporter, ShardWorker

_LOOK = 1.0  # seconds between looks at a wish to stop, which may be requests to a file server

# What is said of a row: who begins it, what came of each shard, and None at last.
ActorMessage: TypeAlias = "str | tuple[ProgressCounts, ShardResult] | None"


class ShardActor:
    """Works at the shards of a row; nothing that happens to them raises."""

    def __init__(self, environment: WorkerEnvironment, spec: bytes) -> None:
        environment.apply()
        self._spec = spec
        self._worker: ShardWorker | None = None
        self._progressed = ProgressCounts()
        self._looked = 0.0

    def __call__(self, batch: Mapping[str, Any]) -> Iterator[dict[str, list[bytes]]]:
        """Yields that the row is begun, what came of each shard, and that it is done."""
        row, orders = int(batch["row"][0]), [load(order) for order in load(batch["orders"][0])]
        fault = self._build()
        yield self._say(row, f"{os.getpid()}@{node_id()}")
        for result in self._results(orders, fault):
            progressed, self._progressed = self._progressed, ProgressCounts()
            yield self._say(row, (progressed, result))
        yield self._say(row, None)

    def _build(self) -> str:
        """Builds what works at shards, the first time; returns the user's mistake, if it is one."""
        try:
            self._worker = self._worker or _worker(self._spec, self._report, self._check)
        except UserError as error:
            return str(error)
        except Exception:
            return f"a worker failed:\n{traceback.format_exc()}"
        return ""

    def _say(self, row: int, message: ActorMessage) -> dict[str, list[bytes]]:
        return {"said": [dump((row, message))]}

    def _results(self, orders: Sequence[ShardOrder], fault: str) -> Iterator[ShardResult]:
        try:
            if self._worker and not fault:
                yield from self._worker.run(iter(orders))
        except SystemExit:  # which Ray takes for the wish to end; as a death it begins anew
            os._exit(1)
        except Exception:
            fault = f"a worker failed:\n{traceback.format_exc()}"
        if fault:
            yield ShardResult(orders[0].shard.number, outcome="failed", error=fault)

    def _report(self, progressed: ProgressCounts) -> None:
        self._progressed.add(progressed)

    def _check(self) -> None:
        assert self._worker is not None
        if (now := time.monotonic()) - self._looked >= _LOOK:
            self._looked = now
            if not _goes_on(self._worker.pipelines.spec):
                raise Stopped("")


def find_sizes(environment: WorkerEnvironment, spec: bytes) -> bytes:
    """Returns the sizes of batches that the reader finds itself, or the user's mistake, dumped."""
    environment.apply()
    try:
        return dump(_worker(spec, lambda _: None, lambda: None).sizes())
    except UserError as error:
        return dump(str(error))


def _worker(
    spec: bytes, report: Callable[[ProgressCounts], None], check: Callable[[], None]
) -> ShardWorker:
    """Builds what works at shards.

    Raises:
        UserError: This machine does not see the run's directory; or a class is another one here.
    """
    opened: BatchSpec = load(spec)
    if not _goes_on(opened):
        raise UserError(
            f"{opened.directory}: machine {platform.node()} of the Ray cluster does not see this"
            " directory: give an --out that all machines share, or one at a URL (s3://…)"
        )
    return ShardWorker(opened, Reporter(report, check))


def token_of(spec: BatchSpec) -> Path:
    """Returns the file for which workers look: do they see the run, and is it to go on?"""
    return Path(spec.directory, f".ray-{spec.driver}")


def _goes_on(spec: BatchSpec) -> bool:
    """Says whether the run is seen and goes on; at a URL it is always, and ends by a kill."""
    return spec.remote is not None or token_of(spec).exists()
