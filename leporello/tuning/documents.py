"""Which documents a point is scored on: those chosen on, in one order, and those kept apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import TypeAlias

from leporello.config import TaskSpec
from leporello.config.metrics import entry_of, metrics_of, specs_of
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import Example
from leporello.engine.task_examples import checked_metrics, examples_of, task_errors
from leporello.metrics import Metric
from leporello.metrics.protocol import is_later
from leporello.training.splits import document_of

# Keys of documents, by task, in the order in which they are looked at.
Documents: TypeAlias = Mapping[str, Sequence[str]]

_FEW = 30  # documents of a task, below which each is kept apart in its turn
_PARTS, _FOLDS = 3, 5


@dataclass(frozen=True)
class TunedTask:
    """A task that points are scored on.

    Attributes:
        spec: The task as declared.
        source: The task, built.
        data: Fingerprint of its data.
        entries: The metric, as a task lists it.
        metric: The metric.
        documents: Examples on each document, by what the document is.
    """

    spec: TaskSpec
    source: Task
    data: str
    entries: tuple[MetricEntry, ...]
    metric: Metric
    documents: Mapping[str, tuple[Example, ...]]

    @property
    def name(self) -> str:
        """The task's name."""
        return self.spec.name


def tuned_task(spec: TaskSpec, metric: str, limit: int | None) -> TunedTask:
    """Returns a task with its examples read.

    Args:
        spec: The task as declared.
        metric: Metric in place of the task's first one that scores each answer as it comes.
        limit: Number of examples at most.

    Raises:
        UserError: There is no such data or metric, or too few documents to keep some apart.
    """
    source: Task = spec.spec.build()
    entries = [*map(entry_of, specs_of([metric]))] if metric else []
    listed = tuple(entries) or spec.metrics_of(source) or checked_metrics(source)
    made = ((entry, one) for entry in listed for one in metrics_of([entry]).values())
    entry, chosen = next((pair for pair in made if not is_later(pair[1])), (None, None))
    if entry is None or chosen is None:
        raise UserError(
            f"task {spec.name!r} has no metric that scores an answer as it comes: name one with"
            " --metric"
        )
    with task_errors(spec.name):
        data = str(source.fingerprint())
    documents: dict[str, list[Example]] = {}
    for example in islice(examples_of(source, spec.name), limit):
        documents.setdefault(_key(example), []).append(example)
    if len(documents) < _FOLDS:
        raise UserError(
            f"task {spec.name!r} has {len(documents)} documents, too few to choose on some and keep"
            f" others apart: tune needs {_FOLDS}"
        )
    grouped = {key: tuple(examples) for key, examples in documents.items()}
    return TunedTask(spec, source, data, (entry,), chosen, grouped)


def _key(example: Example) -> str:
    """Returns what stands for a document in whatever task: its text, or that it was made from."""
    made_from = document_of(example)
    of_text = example.document.sha256 if made_from == example.document.id else made_from
    return sha256(of_text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Round:
    """One search: what it may look at, and what is looked at once it is over.

    Attributes:
        chosen_on: Documents that points are scored on, in the order in which they are looked at.
        apart: Documents that the search never looks at.
    """

    chosen_on: Documents
    apart: Documents


def rounds_of(tasks: Sequence[TunedTask], seed: int) -> list[Round]:
    """Returns the searches; what the last one finds is what is kept.

    A third of the documents is kept apart. Where a task has few, each fifth is kept apart in its
    turn from a search of its own (nested cross-validation), and the last search looks at all.
    A document of several tasks is on one side in all of them.
    """
    crossed = min(len(task.documents) for task in tasks) < _FEW
    parts: dict[str, int] = {}
    orders = {task.name: _shuffled(task.documents, seed) for task in tasks}
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


def _shuffled(keys: Iterable[str], seed: int) -> list[str]:
    return sorted(keys, key=lambda key: sha256(f"{seed} {key}".encode()).digest())


def leading(documents: Documents, share: float, least: int) -> Documents:
    """Returns a share of each task's documents from the first on, so many at least."""
    return {
        task: keys[: max(least, math.ceil(len(keys) * share))] for task, keys in documents.items()
    }
