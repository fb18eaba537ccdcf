"""Division of a task's documents into those that points are chosen on and those kept apart."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TypeAlias

from leporello.config import TaskSpec
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.core.errors import UserError, counted
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import Example
from leporello.engine.task_examples import checked_metrics, examples_of, task_errors
from leporello.metrics import Metric
from leporello.metrics.protocol import is_later
from leporello.training.splits import document_of

# Keys of documents, by task, in the order in which points are scored on them.
Documents: TypeAlias = Mapping[str, Sequence[str]]

_FEW = 30  # documents of a task; with fewer, cross-validation keeps each one apart once
_PARTS, _FOLDS = 3, 5


@dataclass(frozen=True)
class TunedTask:
    """A task that points are scored on."""

    spec: TaskSpec  # task as declared
    source: Task
    data: str
    entries: tuple[MetricEntry, ...]  # metric as a task lists it
    metric: Metric
    # Examples on each document, by the key of the document.
    documents: Mapping[str, tuple[Example, ...]]

    @property
    def name(self) -> str:
        """Name of the task."""
        return self.spec.name


def tuned_task(spec: TaskSpec, metric: str, limit: int | None) -> TunedTask:
    """Returns a task with its examples; raises UserError if documents are too few to divide."""
    source: Task = spec.spec.build()
    entries = [*map(entry_of, specs_of([metric]))] if metric else []
    listed = tuple(entries) or spec.metrics_of(source) or checked_metrics(source)
    pairs = ((entry, built) for entry in listed for built in metrics_of([entry]).values())
    entry, chosen = next((pair for pair in pairs if not is_later(pair[1])), (None, None))
    if entry is None or chosen is None:
        raise UserError(
            f"task {spec.name!r} has no metric that scores answers one by one: name one with"
            " --metric"
        )
    with task_errors(spec.name):
        data = str(source.fingerprint())
    documents: dict[str, list[Example]] = {}
    for example in islice(examples_of(source, spec.name), limit):
        documents.setdefault(_key(example), []).append(example)
    if len(documents) < _FOLDS:
        raise UserError(
            f"task {spec.name!r} has {counted(len(documents), 'document')}, too few to search on"
            f" some and test on others: tune needs {_FOLDS}"
        )
    grouped = {key: tuple(examples) for key, examples in documents.items()}
    return TunedTask(spec, source, data, (entry,), chosen, grouped)


def _key(example: Example) -> str:
    """Returns a key of a document that is the same in all tasks, and for its shuffled texts."""
    original = document_of(example)
    identity = example.document.sha256 if original == example.document.id else original
    return sha256(identity.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Round:
    """Documents of one search."""

    chosen_on: Documents  # documents that points are scored on, in this order
    apart: Documents  # documents that only the best point is scored on, after the search


def rounds_of(tasks: Sequence[TunedTask], seed: int) -> list[Round]:
    """Returns the documents of each search; the result of the last search is used.

    A third of the documents is kept apart. If a task has few documents, each of five searches keeps
    another fifth apart (nested cross-validation), and the last search uses all documents. A
    document of several tasks is on the same side in all of them.
    """
    crossed = min(len(task.documents) for task in tasks) < _FEW
    parts: dict[str, int] = {}
    # Shuffled by a hash, so that a document has the same place in all processes.
    orders = {
        task.name: sorted(task.documents, key=lambda key: sha256(f"{seed} {key}".encode()).digest())
        for task in tasks
    }
    for keys in orders.values():
        for number, key in enumerate(keys):
            parts.setdefault(key, number % (_FOLDS if crossed else _PARTS))
    apart = range(_FOLDS) if crossed else range(1)
    rounds = [Round(*_sides(orders, parts, number)) for number in apart]
    return [*rounds, Round(orders, {})] if crossed else rounds


def _sides(orders: Documents, parts: Mapping[str, int], number: int) -> Iterator[Documents]:
    for inside in (False, True):
        yield {
            task: [key for key in keys if (parts[key] == number) == inside]
            for task, keys in orders.items()
        }


def leading(documents: Documents, share: float, least: int) -> Documents:
    """Returns the first documents of each task: a share of them, but not fewer than `least`."""
    return {
        task: keys[: max(least, math.ceil(len(keys) * share))] for task, keys in documents.items()
    }
