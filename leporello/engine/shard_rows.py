"""Runs one pipeline over examples as a single shard, without a worker process."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from leporello.config import Pipeline, PipelineSpec
from leporello.config.metrics import metrics_of
from leporello.core.calls.contracts import check_files, load_models
from leporello.core.errors import UserError
from leporello.core.official_prompt import OfficialPrompt
from leporello.core.protocols import MetricEntry
from leporello.core.records import CacheProtocol, Document, Example, Span
from leporello.core.secrets import is_set
from leporello.engine.database import StoreKey
from leporello.engine.failures import Attempts
from leporello.engine.limits import Limits
from leporello.engine.progress import Listener
from leporello.engine.reading import BatchReaders
from leporello.engine.results.finished import FinishedRow
from leporello.engine.rounds import Rounds
from leporello.engine.slots import Slots
from leporello.engine.store import MemoryStore, Store
from leporello.engine.task_examples import Normalizer

Rows = list[dict[str, Any]]
_TEXT = "Who lives in the mill?\n\nThe cat lives in the mill.\n\nThe king lives in his castle."


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
    store = Store(path, StoreKey(examples=len(examples))) if path else MemoryStore()
    readers = BatchReaders(stages, cache, limits or Limits(), attempts or Attempts())
    run = Rounds(readers, store, listener or Listener(), slots, metrics_of(metrics), normalise)
    try:
        return [*map(decoded, run.run(examples))]
    finally:
        store.close()


def decoded(row: FinishedRow) -> dict[str, Any]:
    """Returns the fields of a finished example in a store."""
    statistics = row.statistics.row()
    scores: dict[str, Any] = {
        name: statistics[name] for name in ("statistics", "faults") if name in statistics
    }
    if row.failure:
        failure = {**row.failure, "traceback": row.traceback}
        return {"done": row.number, **scores, "failure": failure}
    fields = {"prediction": row.prediction, "calls": row.calls, "notes": [*row.statistics.notes]}
    return {"done": row.number, **scores, **fields}


def trials(pipelines: Iterable[PipelineSpec]) -> Iterator[tuple[str, str]]:
    """Yields each pipeline's name and its problem with a tiny document, empty if it works."""
    built: dict[str, Any] = {}
    for pipeline in pipelines:
        unset = [variable for variable in pipeline.variables() if not is_set(variable)]
        if unset:
            yield pipeline.name, f"the environment has no {', '.join(unset)}"
            continue
        try:
            problem = _problem(pipeline.build(built))
        except (UserError, ValueError) as error:  # constructors raise ValueError
            problem = str(error)
        yield pipeline.name, " ".join(problem.split())


def _problem(stages: Pipeline) -> str:
    """Returns the first failure if all examples fail; empty if one succeeds."""
    for stage in stages.all():
        check_files(stage)
        load_models(stage)
    problems = []
    for example in _examples():
        [row] = rows_of(None, [example], stages, metrics=())
        if (failure := row.get("failure")) is None:
            return ""
        problems.append(f"the {failure['stage']} failed: {failure['error']}")
    return problems[0]


def _examples() -> Iterator[Example]:
    """Yields an example of each kind of task; a pipeline works if it answers one of them."""
    parts = (Span(0, 22), Span(24, 50), Span(52, len(_TEXT)))
    example = Example("tried", Document("tried", _TEXT, parts=parts), "Who lives in the castle?")
    yield example
    yield replace(example, choices=("the cat", "the king"))
    yield replace(example, metadata=OfficialPrompt("Read:\n", "\n\n", example.question).metadata())
