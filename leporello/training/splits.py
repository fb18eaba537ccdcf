"""Data of a training: its pipeline and task, and the documents for training and validation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from leporello.config import Config, PipelineSpec, TaskSpec, load_config
from leporello.core.errors import UserError
from leporello.core.protocols import MetricEntry, Task
from leporello.core.records import Example
from leporello.core.training import Training
from leporello.engine.task_examples import examples_of, task_errors
from leporello.jobs.options import OneJobOptions

_OF_ALL = ("layout", "examples_of", "closed")


@dataclass(frozen=True)
class Splits:
    """The sides of a training.

    Attributes:
        task: Task as declared, with the split that is learnt from.
        train: Source of the examples that are learnt.
        validation: Source of the examples that are validated on; None if nothing is.
        validated: Name of what is validated on.
    """

    task: TaskSpec
    train: Task
    validation: Task | None
    validated: str


def split(task: TaskSpec, named: str, settings: Training, *, needed: bool) -> Splits:
    """Returns what is learnt and what is validated on.

    Args:
        task: Task as declared.
        named: The split to learn from; empty is `train`, where there are splits.
        settings: Settings of the training, which say what is validated on.
        needed: Whether anything must be validated on.

    Raises:
        UserError: There is none, or it is what is learnt.
    """
    learnt = task.with_split(named or "train") if named or task.has_splits else task
    source: Task = learnt.spec.build()
    if settings.holdout:
        drawn = _draw_holdout(source, task.name, settings)
        description = f"{len(drawn)} documents held out"
        return Splits(
            learnt, Part(source, drawn, inside=False), Part(source, drawn, inside=True), description
        )
    validated = settings.validation or ("validation" if needed and task.has_splits else "")
    if not validated and needed:
        raise UserError(
            f"task {task.name!r} has no splits, and a model that is fine-tuned, or what"
            " train.choose chooses, is validated on what is not learnt: --set train.holdout=0.1"
            " holds a tenth of the documents out"
        )
    if not validated:
        return Splits(learnt, source, None, "")
    if validated == (named or "train"):
        raise UserError(f"split {validated!r} cannot be learnt and validated on: name two")
    other: Task = task.with_split(validated).spec.build()
    return Splits(learnt, source, other, f"split {validated}")


def _draw_holdout(source: Task, name: str, settings: Training) -> frozenset[str]:
    """Returns the ids of the documents that are held out, at least one and not all."""
    with task_errors(name):
        ids = list(dict.fromkeys(map(document_of, examples_of(source, name))))
    count = max(1, round(settings.holdout * len(ids)))
    if count >= len(ids):
        raise UserError(
            f"task {name!r} has {len(ids)} documents, of which a share of {settings.holdout}"
            " cannot be held out: nothing would be left to learn"
        )
    # Whole documents, since questions on one document share its hits (decision 26).
    generator = random.Random(f"holdout {settings.seed}")
    return frozenset(generator.sample(ids, count))


def document_of(example: Example) -> str:
    """Returns the id of the document that an example is on: a shuffle's is that of its text."""
    gold = example.metadata.get("gold")
    shuffled = gold.get("shuffle_test") if isinstance(gold, dict) else None
    return str(shuffled["document"]) if isinstance(shuffled, dict) else example.document.id


@dataclass(frozen=True)
class Part:
    """A task's examples on some of its documents.

    Attributes:
        source: The task.
        documents: Ids of these documents.
        inside: Whether examples on them are meant, or all others.
    """

    source: Any
    documents: frozenset[str]
    inside: bool

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- `normalise` and what else a task may have
        # Its layout is of all documents: those on this side are found by going through them.
        if name.startswith("__") or name in _OF_ALL:
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """The task's."""
        names: tuple[MetricEntry, ...] = self.source.metrics
        return names

    def examples(self) -> Iterator[Example]:
        """Yields those on this side."""
        for example in self.source.examples():
            if (document_of(example) in self.documents) == self.inside:
                yield example

    def fingerprint(self) -> str:
        """Returns the hash of all of the task's data."""
        return str(self.source.fingerprint())


_NAMED = 5  # of many, in a message

T = TypeVar("T", PipelineSpec, TaskSpec)


def one_job(verb: str, options: OneJobOptions) -> tuple[Config, PipelineSpec, TaskSpec]:
    """Returns the config, and the one pipeline and the one task in it that a verb takes.

    Args:
        verb: Name of the verb, for messages.
        options: Options that name them.

    Raises:
        UserError: There are several.
    """
    names = [options.pipeline] if options.pipeline else []
    loaded = load_config(options.config, options.settings, names)
    point = _only(verb, "pipeline", loaded.select(names))
    tasks = loaded.select_tasks(point, [options.task] if options.task else [])
    return loaded, point, _only(verb, "task", tasks)


def _only(verb: str, kind: str, choices: Sequence[T]) -> T:
    if len(choices) > 1:
        names = ", ".join(choice.name for choice in choices[:_NAMED])
        raise UserError(f"{verb} takes one {kind}, and these are {len(choices)}: {names}; name one")
    return choices[0]
