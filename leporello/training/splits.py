"""Data of a training: its pipeline, its task, and the documents to train and validate on."""

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

_OF_COMPLETE_TASK = ("layout", "examples_of", "closed")


@dataclass(frozen=True)
class Splits:
    """Training and validation data.

    Attributes:
        task: Task as declared, with the split to train on.
        train: Source of the training examples.
        validation: Source of the validation examples; None without validation.
        validated: Description of the validation data.
    """

    task: TaskSpec
    train: Task
    validation: Task | None
    validated: str


def split(task: TaskSpec, name: str, settings: Training, *, needed: bool) -> Splits:
    """Returns the data to train and to validate on.

    Args:
        task: Task as declared.
        name: Split to train on; if empty, `train`, or all examples of a task without splits.
        settings: Settings of the training, which choose the validation data.
        needed: Whether the training needs validation data.

    Raises:
        UserError: They are needed and missing, or are the training data.
    """
    learnt = task.with_split(name or "train") if name or task.has_splits else task
    source: Task = learnt.spec.build()
    # No documents are held out by default: fine-tuning must name its validation data (decision 26).
    if settings.holdout:
        held_out = _draw_holdout(source, task.name, settings)
        train, validation = (Part(source, held_out, inside=side) for side in (False, True))
        return Splits(learnt, train, validation, f"{len(held_out)} documents held out")
    validated = settings.validation or ("validation" if needed and task.has_splits else "")
    if not validated and needed:
        raise UserError(
            f"task {task.name!r} has no splits, but fine-tuning and train.choose need documents to"
            " validate on: --set train.holdout=0.1 holds a tenth of the documents out"
        )
    if not validated:
        return Splits(learnt, source, None, "")
    # Losses on the training data always fall, so they would choose the most overfitted checkpoint.
    if validated == (name or "train"):
        raise UserError(f"split {validated!r} cannot be both trained and validated on: name two")
    other_split: Task = task.with_split(validated).spec.build()
    return Splits(learnt, source, other_split, f"split {validated}")


def _draw_holdout(source: Task, name: str, settings: Training) -> frozenset[str]:
    """Returns the ids of the documents that are held out, at least one and not all."""
    with task_errors(name):
        ids = list(dict.fromkeys(map(document_of, examples_of(source, name))))
    count = max(1, round(settings.holdout * len(ids)))
    if count >= len(ids):
        raise UserError(
            f"task {name!r} has {len(ids)} documents: if a share of {settings.holdout} is held"
            " out, none remains to train on"
        )
    # Documents rather than questions, since questions on one document share hits (decision 26).
    # The prefix separates this draw from others with the same seed, such as the order of examples.
    generator = random.Random(f"holdout {settings.seed}")
    return frozenset(generator.sample(ids, count))


def document_of(example: Example) -> str:
    """Returns the id of an example's document; for a shuffle test, that of the original text."""
    gold = example.metadata.get("gold")
    # Shuffled copies count as their original: on both sides, its words would give the answer away.
    shuffled = gold.get("shuffle_test") if isinstance(gold, dict) else None
    return str(shuffled["document"]) if isinstance(shuffled, dict) else example.document.id


@dataclass(frozen=True)
class Part:
    """A task's examples on some of its documents.

    Attributes:
        source: Task.
        documents: Ids of documents.
        inside: Whether to yield the examples on these documents, or all the others.
    """

    source: Any
    documents: frozenset[str]
    inside: bool

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- `normalise` and what else a task may have
        # The task's layout covers all documents; only `examples` selects those of this part.
        if name.startswith("__") or name in _OF_COMPLETE_TASK:
            raise AttributeError(name)
        return getattr(self.source, name)

    @property
    def metrics(self) -> tuple[MetricEntry, ...]:
        """Metrics of the task."""
        names: tuple[MetricEntry, ...] = self.source.metrics
        return names

    def examples(self) -> Iterator[Example]:
        """Yields the examples of this part."""
        for example in self.source.examples():
            if (document_of(example) in self.documents) == self.inside:
                yield example

    def fingerprint(self) -> str:
        """Returns the hash of all of the task's data."""
        return str(self.source.fingerprint())


_MAX_NAMES = 5  # in a message

T = TypeVar("T", PipelineSpec, TaskSpec)


def one_job(verb: str, options: OneJobOptions) -> tuple[Config, PipelineSpec, TaskSpec]:
    """Returns the config, and the only pipeline and the only task that it selects.

    Args:
        verb: Name of the verb, for messages.
        options: Options that select them.

    Raises:
        UserError: They select several.
    """
    names = [options.pipeline] if options.pipeline else []
    loaded = load_config(options.config, options.settings, names)
    point = _only(verb, "pipeline", loaded.select(names))
    tasks = loaded.select_tasks(point, [options.task] if options.task else [])
    return loaded, point, _only(verb, "task", tasks)


def _only(verb: str, kind: str, choices: Sequence[T]) -> T:
    if len(choices) > 1:
        names = ", ".join(choice.name for choice in choices[:_MAX_NAMES])
        raise UserError(f"{verb} takes one {kind}, but got {len(choices)}: {names}; name one")
    return choices[0]
