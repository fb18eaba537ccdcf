"""Runs one pipeline over examples as a single shard, without a worker process."""

from __future__ import annotations

from collections.abc import Sequence
from json import loads  # by name: a stage may replace functions of modules
from pathlib import Path
from typing import Any

from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.core.protocols import MetricEntry
from leporello.core.records import CacheProtocol, Example
from leporello.engine.combining import CombinerRunner
from leporello.engine.database import StoreKey
from leporello.engine.failures import Attempts
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener, Silent
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import FinishedRow
from leporello.engine.results.serialization import calls_from_row
from leporello.engine.rounds import Rounds, rounds
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore, Store
from leporello.engine.task_examples import Normalizer

Rows = list[dict[str, Any]]


def rows_of(
    path: Path | None,
    examples: Sequence[Example],
    stages: Pipeline,
    limits: Limits | None = None,
    *,
    cache: CacheProtocol | None = None,
    attempts: Attempts | None = None,
    slots: Slots | None = None,
    metrics: Sequence[MetricEntry] = ("f1",),
    normalise: Normalizer | None = None,
    listener: Listener | None = None,
) -> Rows:
    """Runs examples with a store at a path, or in memory, and returns their rows."""
    limits = limits or Limits()
    timeout = limits.example_timeout
    store = Store(path, StoreKey(examples=len(examples))) if path else MemoryStore()
    runner = CombinerRunner(stages, metrics_of(metrics), normalise, timeout, attempts or Attempts())
    readers = BatchReaders(stages, cache, timeout)
    run = Rounds(runner, readers, store, limits, listener or Silent(), slots)
    try:
        for _ in rounds(run, examples, timeout):
            pass
        return [*map(decoded, store.rows())]
    finally:
        store.close()


def decoded(row: FinishedRow) -> dict[str, Any]:
    """Returns the fields of a finished example in a store."""
    statistics = loads(row.statistics)
    scores = {name: statistics[name] for name in ("statistics", "faults") if name in statistics}
    if row.failed:
        failure = {**loads(row.prediction), "traceback": row.traceback.decode()}
        return {"done": row.number, **scores, "failure": failure}
    calls = loads(row.calls)
    return {
        "done": row.number,
        **scores,
        "prediction": loads(row.prediction),
        "calls": calls_from_row(calls["calls"]),
        "notes": calls["notes"],
    }
