"""One pipeline over some examples as one shard, without a worker around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.config import Pipeline
from leporello.config.metrics import metrics_of
from leporello.core.protocols import MetricEntry
from leporello.core.records import CacheProtocol, Example
from leporello.engine.attempts import Attempts
from leporello.engine.combining import ActiveCombiners
from leporello.engine.engine import Engine
from leporello.engine.journal.journal import FinishedExample, Journal, finished_in
from leporello.engine.journal.rows import ShardRow
from leporello.engine.journal.serialization import calls_from_row, calls_row
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener, Silent
from leporello.engine.reading import WindowReaders
from leporello.engine.selection import select_document
from leporello.engine.sliding import SlidingEngine, Slots
from leporello.engine.task_examples import Normalizer, by_document

Rows = list[dict[str, Any]]


def rows_of(
    path: Path,
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
    """Finishes the examples with the journal at a path, and returns what it holds then."""
    limits, listener = limits or Limits(), listener or Silent()
    timeout = limits.example_timeout
    journal = Journal(path)
    journal.begin(ShardRow(0, 0, len(examples), "run"))
    combiners = ActiveCombiners(
        stages, metrics_of(metrics), normalise, timeout, attempts or Attempts()
    )
    readers = WindowReaders(stages, cache, timeout)
    engine: Engine | SlidingEngine
    if slots:
        engine = SlidingEngine(journal, readers, combiners, slots, listener)
    else:
        engine = Engine(journal, readers, combiners, limits, listener)
    try:
        for first, group in by_document(examples):
            if all(number in journal.done for number in range(first, first + len(group))):
                engine.skip(len(group))
            else:
                selected = select_document(stages, group, timeout)
                engine.add_document(first, group, selected.selections)
        engine.finish()
    finally:
        journal.close()
    return finished_rows(path)


def finished_rows(path: Path) -> Rows:
    """Returns the finished examples of a journal, each with its calls."""
    return [_row(example) for example in finished_in(path)]


def _row(finished: FinishedExample) -> dict[str, Any]:
    row: Mapping[str, Any] = finished.row.row()
    if finished.row.reads is None:
        return {**row}
    calls = calls_from_row(calls_row(finished.row.reads, finished.outputs))
    return {**row, "calls": calls}
