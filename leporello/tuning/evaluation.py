"""Scores points document by document, stores the scores, and compares them with intervals."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from leporello.analysis.comparison.scores import scored_by_all
from leporello.cache.store import Cache
from leporello.config import PipelineSpec
from leporello.core.calls.contracts import check_files
from leporello.core.files import read_json, write_json
from leporello.core.hashing import digest
from leporello.core.records import JSON, Example
from leporello.engine.database import finished_in
from leporello.engine.progress import Listener
from leporello.engine.results.finished import ExampleStatistics
from leporello.engine.shard_rows import rows_of
from leporello.engine.task_examples import no_answer_of, normalizer_of
from leporello.jobs.directory import safe_name
from leporello.jobs.manifest import job_signature
from leporello.metrics import Statistics
from leporello.metrics.own import resampled
from leporello.tuning.account import Account
from leporello.tuning.documents import Documents, TunedTask

if TYPE_CHECKING:
    from leporello.analysis.comparison.significance import Numbers

# Examples by task and document.
Measured: TypeAlias = Mapping[str, Mapping[str, Sequence[ExampleStatistics]]]

_READERS = 4  # whose models stay loaded
_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """Score, or difference of two scores, as the mean of the tasks."""

    value: float  # score or difference
    # 95 % bootstrap interval over documents, (low, high); None if a metric cannot be resampled.
    interval: tuple[float, float] | None


@dataclass
class Evaluator:
    """Scores points on tasks of equal weight, and compares them.

    It stores the scores in files named after a hash of all inputs.
    """

    folder: Path  # folder of the scores, with a file per point, task and group of documents
    tasks: Mapping[str, TunedTask]
    cache: Cache | None  # cache of data derived from documents; None disables caching
    account: Account  # account to which costs are charged
    seed: int  # seed of the resampling
    _scored: dict[Path, dict[str, Sequence[ExampleStatistics]]] = field(default_factory=dict)
    _built: dict[str, dict[str, Any]] = field(default_factory=dict)

    def measured(
        self, point: PipelineSpec, documents: Documents, check: Callable[[], None] = lambda: None
    ) -> Measured:
        """Returns examples' statistics by task; `check` runs before each step, and may raise."""
        tasks = documents.items()
        return {name: self._examples_of(point, name, keys, check) for name, keys in tasks}

    def identity(self, point: PipelineSpec, task: str) -> str:
        """Returns a hash of everything that a point's answers to a task depend on."""
        tuned = self.tasks[task]
        return digest(job_signature(point, tuned.spec, tuned.data, tuned.entries))

    def _examples_of(
        self, point: PipelineSpec, name: str, keys: Sequence[str], check: Callable[[], None]
    ) -> Mapping[str, Sequence[ExampleStatistics]]:
        folder = self.folder / self.identity(point, name) / safe_name(name)
        scored = self._scored.get(folder)
        if scored is None:
            scored = self._scored[folder] = self._read(folder)
        missing = [key for key in keys if key not in scored]
        if missing:
            scored |= self._evaluate(point, self.tasks[name], missing, folder, check)
        return {key: scored[key] for key in keys}

    def _read(self, folder: Path) -> dict[str, Sequence[ExampleStatistics]]:
        """Returns the examples of earlier processes, and adds their costs to the account."""
        scored: dict[str, Sequence[ExampleStatistics]] = {}
        for file in sorted(folder.glob("*.json")):
            row = read_json(file)
            documents = {
                key: [*map(ExampleStatistics.from_row, rows)]
                for key, rows in row["documents"].items()
            }
            self.account.pay(_dollars(documents), row["seconds"])
            scored |= documents
        return scored

    def _evaluate(
        self,
        point: PipelineSpec,
        task: TunedTask,
        keys: Sequence[str],
        folder: Path,
        check: Callable[[], None],
    ) -> dict[str, Sequence[ExampleStatistics]]:
        start = time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        name = digest([*keys])
        store = folder / f"{name}.sqlite"
        stages = replace(point.build(self._built_for(point)), no_answer=no_answer_of(task.source))
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
            listener=Listener(check=check),
        )
        finished = (row.statistics for row in finished_in(store))
        scored = {key: [next(finished) for _ in task.documents[key]] for key in keys}
        row: dict[str, JSON] = {
            "pipeline": point.resolved(),
            "seconds": time.monotonic() - start,
            "documents": {k: [example.row() for example in rows] for k, rows in scored.items()},
        }
        write_json(folder / f"{name}.json", row, indent=None)
        store.unlink()
        self.account.pay(_dollars(scored), 0.0)
        return {**scored}

    def _fresh(self, examples: Sequence[Example]) -> list[Example]:
        """Returns examples on copies of their documents, which drops data of other points."""
        documents = {id(example.document): replace(example.document) for example in examples}
        if self.cache:
            for document in documents.values():
                document.use_cache(self.cache)
        return [replace(example, document=documents[id(example.document)]) for example in examples]

    def _built_for(self, point: PipelineSpec) -> dict[str, Any]:
        """Returns the stages of earlier points with its readers, whose models stay loaded."""
        readers = {key: s.resolved() for key, s in point.stages.items() if key.startswith("reader")}
        key = digest({**readers})
        built = self._built[key] = self._built.pop(key, {})
        for oldest in [*self._built][:-_READERS]:
            del self._built[oldest]
        return built

    def score(self, measured: Measured, task: str = "") -> float:
        """Returns the mean of the tasks' scores, or the score of one task."""
        names = [task] if task else [*measured]
        return round(fmean(self._score(name, measured) for name in names), 4)

    def estimate(self, measured: Measured) -> Estimate:
        """Returns a point's score with its interval."""
        from leporello.analysis.comparison.significance import interval

        scores = self._resampled([measured], _RESAMPLES)
        return Estimate(self.score(measured), None if scores is None else interval(scores[0]))

    def difference(
        self, point: Measured, baseline: Measured, samples: int = _RESAMPLES
    ) -> Estimate:
        """Returns the score of a point minus that of a baseline, over the same documents."""
        from leporello.analysis.comparison.significance import interval

        both = [dict(sorted(measured.items())) for measured in (point, baseline)]
        scores = self._resampled(both, samples)
        value = round(self.score(both[0]) - self.score(both[1]), 4)
        if scores is None:
            return Estimate(value, None)
        return Estimate(value, interval(scores[0] - scores[1]))

    def _score(self, task: str, measured: Measured) -> float:
        metric = self.tasks[task].metric
        statistics = [s for s in _statistics(metric.name, measured[task]) if s is not None]
        return metric.aggregate(statistics).get(metric.headline, 0.0) if statistics else 0.0

    def _resampled(self, points: Sequence[Measured], samples: int) -> Numbers | None:
        """Returns mean scores over resampled documents, of shape (points, samples)."""
        numbered = enumerate(points[0])
        tables = [self._resampled_task(name, points, samples, n) for n, name in numbered]
        valid = [table for table in tables if table is not None]
        return sum(valid[1:], valid[0]) / len(valid) if len(valid) == len(tables) else None

    def _resampled_task(
        self, task: str, points: Sequence[Measured], samples: int, number: int
    ) -> Numbers | None:
        from leporello.analysis.comparison.significance import bootstrap

        metric = self.tasks[task].metric
        rows = [_statistics(metric.name, measured[task]) for measured in points]
        scored, tables = scored_by_all(rows)
        summed = resampled(metric, tables) if scored else None
        if summed is None:
            return None
        documents = points[0][task]
        keys = [key for key in sorted(documents) for _ in documents[key]]
        numbers: dict[str, int] = {}  # of documents
        return bootstrap(
            [summed.summands(table) for table in tables],
            summed.of_sums,
            samples=samples,
            seed=self.seed + number,
            units=[numbers.setdefault(keys[i], len(numbers)) for i in scored],
        )


def _dollars(documents: Mapping[str, Sequence[ExampleStatistics]]) -> float | None:
    """Returns the price of reads; None if a reader does not report prices."""
    examples = [example for rows in documents.values() for example in rows if not example.failure]
    prices = [example.dollars for example in examples if example.dollars is not None]
    return sum(prices) if len(prices) == len(examples) else None


def cost(measured: Measured, unit: str) -> float:
    """Returns the mean over tasks of `characters` read, `tokens` or `dollars` per question."""
    return fmean(
        fmean(_cost(e, unit) for rows in task.values() for e in rows) for task in measured.values()
    )


def _cost(example: ExampleStatistics, unit: str) -> float:
    if unit == "dollars":
        return example.dollars or 0.0
    if unit == "characters":
        return example.coverage.get("read", 0)
    return example.input_tokens + example.output_tokens


def _statistics(
    metric: str, documents: Mapping[str, Sequence[ExampleStatistics]]
) -> list[Statistics | None]:
    return [e.statistics.get(metric) for key in sorted(documents) for e in documents[key]]
