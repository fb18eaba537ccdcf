"""Points scored document by document; what was scored once is kept, and never scored again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from leporello.cache.store import Cache
from leporello.config import PipelineSpec
from leporello.config.specs import StageFactory
from leporello.core.calls.contracts import check_files
from leporello.core.files import read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import Example
from leporello.engine.database import finished_in
from leporello.engine.progress import Silent
from leporello.engine.results.finished import ExampleStatistics
from leporello.engine.shard_rows import rows_of
from leporello.engine.task_examples import no_answer_of, normalizer_of
from leporello.jobs.directory import safe_name
from leporello.jobs.signature import job_signature
from leporello.tuning.account import Account
from leporello.tuning.documents import Documents, TunedTask

# Examples by task and document.
Measured: TypeAlias = Mapping[str, Mapping[str, Sequence[ExampleStatistics]]]

_READERS = 4  # that are kept loaded


class _Checks(Silent):
    """Asks before each step whether to go on."""

    def __init__(self, check: Callable[[], None]) -> None:
        self.before_step = check  # type: ignore[method-assign]


@dataclass
class Evaluator:
    """Scores points, and keeps what came of it under what it depends on.

    Attributes:
        folder: Folder in which it is kept, a file a point, task and group of documents.
        tasks: Tasks by name.
        cache: Cache of what is derived from documents; None keeps nothing.
        account: Account that work is counted in.
    """

    folder: Path
    tasks: Mapping[str, TunedTask]
    cache: Cache | None
    account: Account
    _kept: dict[Path, dict[str, Sequence[ExampleStatistics]]] = field(default_factory=dict)
    _factories: dict[str, StageFactory] = field(default_factory=dict)

    def measured(
        self, point: PipelineSpec, documents: Documents, check: Callable[[], None] = lambda: None
    ) -> Measured:
        """Returns the examples on documents as a point answers them.

        Args:
            point: The pipeline.
            documents: Documents by task.
            check: Function that is called before each step; what it raises ends the work.

        Raises:
            UserError: A mistake of the user's.
        """
        return {name: self._of_task(point, name, keys, check) for name, keys in documents.items()}

    def identity(self, point: PipelineSpec, task: str) -> str:
        """Returns what stands for a point on a task: all that its answers depend on."""
        tuned = self.tasks[task]
        return digest(job_signature(point, tuned.spec, tuned.data, tuned.entries))

    def _of_task(
        self, point: PipelineSpec, name: str, keys: Sequence[str], check: Callable[[], None]
    ) -> Mapping[str, Sequence[ExampleStatistics]]:
        folder = self.folder / self.identity(point, name) / safe_name(name)
        kept = self._kept.get(folder)
        if kept is None:
            kept = self._kept[folder] = self._read(folder)
        missing = [key for key in keys if key not in kept]
        if missing:
            kept |= self._evaluate(point, self.tasks[name], missing, folder, check)
        return {key: kept[key] for key in keys}

    def _read(self, folder: Path) -> dict[str, Sequence[ExampleStatistics]]:
        """Returns what an earlier process left, and counts it."""
        found: dict[str, Sequence[ExampleStatistics]] = {}
        for file in sorted(folder.glob("*.json")):
            row = read_json(file)
            own = {
                key: [*map(ExampleStatistics.from_row, rows)]
                for key, rows in row["documents"].items()
            }
            self.account.pay(_dollars(own), row["seconds"])
            found |= own
        return found

    def _evaluate(
        self,
        point: PipelineSpec,
        task: TunedTask,
        keys: Sequence[str],
        folder: Path,
        check: Callable[[], None],
    ) -> dict[str, Sequence[ExampleStatistics]]:
        began = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        name = digest([*keys])
        store = folder / f"{name}.sqlite"
        stages = replace(self._factory(point).build(point), no_answer=no_answer_of(task.source))
        for stage in stages.all():
            check_files(stage, task.data)
        examples = [example for key in keys for example in self._fresh(task.documents[key])]
        rows_of(
            store,
            examples,
            stages,
            cache=self.cache,
            metrics=task.entries,
            normalise=normalizer_of(task.source, wanted=point.normalised),
            listener=_Checks(check),
        )
        rows = (json.loads(row.statistics) for row in finished_in(store))
        finished = map(ExampleStatistics.from_row, rows)
        found = {key: [next(finished) for _ in task.documents[key]] for key in keys}
        plain = {key: [example.row() for example in rows] for key, rows in found.items()}
        seconds = time.monotonic() - began
        write_json(
            folder / f"{name}.json",
            {
                "pipeline": point.resolved(),
                "seconds": seconds,
                "documents": json.loads(json.dumps(plain)),
            },
            indent=None,
        )
        store.unlink()
        self.account.pay(_dollars(found), 0.0)
        return {**found}

    def _fresh(self, examples: Sequence[Example]) -> list[Example]:
        """Returns examples on a document that keeps in memory nothing of other points."""
        documents = {id(example.document): replace(example.document) for example in examples}
        if self.cache:
            for document in documents.values():
                document.use_cache(self.cache)
        return [replace(example, document=documents[id(example.document)]) for example in examples]

    def _factory(self, point: PipelineSpec) -> StageFactory:
        """Returns what builds stages, one a reader: the last readers' models stay loaded."""
        readers = {key: s.resolved() for key, s in point.stages.items() if key.startswith("reader")}
        key = digest({**readers})
        factory = self._factories.pop(key, None) or StageFactory()
        self._factories[key] = factory
        for oldest in [*self._factories][:-_READERS]:
            del self._factories[oldest]
        return factory


def _dollars(found: Mapping[str, Sequence[ExampleStatistics]]) -> float | None:
    """Returns what reads cost; None where a reader knows no prices."""
    prices = [example.dollars for rows in found.values() for example in rows if not example.failure]
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None
