"""Pipelines and tasks of a training, and its documents to train on and to validate on."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from leporello.cache.store import Cache
from leporello.config import Config, PipelineSpec, TaskSpec, load_config
from leporello.config.metrics import metrics_of
from leporello.config.placement import Placement
from leporello.config.suite_files import suite_named
from leporello.core.errors import UserError, counted, few
from leporello.core.protocols import Task
from leporello.core.records import JSON, Example
from leporello.core.training import Training
from leporello.engine.limits import Limits
from leporello.engine.task_examples import checked_metrics, examples_of, task_errors
from leporello.jobs.directory import RunDirectory
from leporello.jobs.interrupts import Interrupts
from leporello.jobs.jobs import Job, RunContext
from leporello.jobs.manifest import job_signature
from leporello.jobs.options import OneJobOptions, TrainOptions
from leporello.jobs.results import Result
from leporello.runs.job_group import JobGroup

_OF_COMPLETE_TASK = ("layout", "examples_of", "closed")
T = TypeVar("T", PipelineSpec, TaskSpec)


@dataclass(frozen=True)
class Splits:
    """Training and validation data; runs pipelines on the latter."""

    task: TaskSpec  # task as declared, with the split to train on
    train: Task  # source of the training examples
    validation: Task | None = None  # source of the validation examples; None without validation
    validated: str = ""  # description of the validation data
    limit: int | None = None  # maximum number of examples to train on, and to validate on
    cache: Cache | None = None  # cache of data derived from documents; None disables caching

    def check(self) -> None:
        """Raises UserError if data are missing or damaged, or a metric is invalid."""
        if self.validation is not None:
            _ = self.headline
            self.validation.fingerprint()
        with task_errors(self.task.name):
            self.train.fingerprint()

    @cached_property
    def headline(self) -> str:
        """Name of the score of the task's first metric; empty without metric or validation."""
        if self.validation is None:
            return ""
        metrics = metrics_of(self.task.metrics or checked_metrics(self.validation))
        return next((metric.headline for metric in metrics.values()), "")

    def score(self, result: Result) -> float:
        """Returns the score that choices are made by; a result without it ranks last."""
        return result.scores.get(self.headline, float("-inf"))

    def best(self, points: Sequence[PipelineSpec]) -> tuple[PipelineSpec, Result]:
        """Returns the first best point and its result; raises UserError if most examples failed."""
        results = [(point, self._run(point)) for point in points]
        # `max` keeps the first of equal points, so declared values win ties (decision 26).
        best, result = max(results, key=lambda pair: self.score(pair[1]))
        # Failures score 0, so with many of them all candidates have similar scores.
        if result.failures * 2 > result.examples:
            raise UserError(
                f"{result.failures} of {counted(result.examples, 'example')} failed on"
                f" {self.validated}: run the untrained pipeline on some examples to see why"
            )
        return best, result

    def _run(self, point: PipelineSpec) -> Result:
        source = self.validation
        assert source is not None
        metrics = self.task.metrics_of(source)
        signature = job_signature(point, self.task, source.fingerprint(), metrics)
        here = replace(point, placement=Placement(workers=0))
        job = Job(here, self.task, source, signature)
        with TemporaryDirectory() as folder, Interrupts() as interrupts:
            context = RunContext(
                # Temporary: the results serve only the choice, and the cache keeps the outputs.
                RunDirectory(Path(folder)),
                Limits(),
                self.limit,
                cache=self.cache,
                check=lambda _: interrupts.check(),
                supervised=False,  # only this process has the validation data
            )
            group = JobGroup([job], context)
            group.run(retry=False)
            [result] = group.close()
        return result


def split(
    task: TaskSpec,
    name: str,
    settings: Training,
    limit: int | None = None,
    cache: Cache | None = None,
    *,
    needed: bool,
) -> Splits:
    """Returns the data to train and to validate on.

    Without a `name`, the split `train` is used, or all examples of a task without splits. Raises
    UserError if validation data are `needed` and missing, or are the training data.
    """
    learnt = task.with_split(name or "train") if name or task.has_splits else task
    source: Task = learnt.spec.build()
    sides = Splits(learnt, source, limit=limit, cache=cache)
    # No documents are held out by default: fine-tuning must name its validation data (decision 26).
    if settings.holdout:
        held_out = _draw_holdout(source, task.name, settings)
        parts: list[Any] = [Part(source, held_out, inside=side) for side in (False, True)]
        description = f"{counted(len(held_out), 'document')} held out"
        return replace(sides, train=parts[0], validation=parts[1], validated=description)
    validated = settings.validation or ("validation" if needed and task.has_splits else "")
    if not validated and needed:
        raise UserError(
            f"task {task.name!r} has no splits, but fine-tuning and train.choose need documents to"
            " validate on: --set train.holdout=0.1 holds a tenth of the documents out"
        )
    if not validated:
        return sides
    # Losses on the training data always fall, so they would choose the most overfitted checkpoint.
    if validated == (name or "train"):
        raise UserError(f"split {validated!r} cannot be both trained and validated on: name two")
    other_split: Task = task.with_split(validated).spec.build()
    return replace(sides, validation=other_split, validated=f"split {validated}")


def _draw_holdout(source: Task, name: str, settings: Training) -> frozenset[str]:
    """Returns the ids of the documents that are held out, at least one and not all."""
    with task_errors(name):
        ids = list(dict.fromkeys(map(document_of, examples_of(source, name))))
    count = max(1, round(settings.holdout * len(ids)))
    if count >= len(ids):
        raise UserError(
            f"task {name!r} has {counted(len(ids), 'document')}: if a share of {settings.holdout}"
            " is held out, none remains to train on"
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
    """A task's examples on some of its documents."""

    source: Any
    documents: frozenset[str]
    inside: bool  # whether to yield the examples on these documents, or all the others

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- all else that a task has
        # The task's layout covers all documents; only `examples` selects those of this part.
        if name.startswith("__") or name in _OF_COMPLETE_TASK:
            raise AttributeError(name)
        return getattr(self.source, name)

    def examples(self) -> Iterator[Example]:
        """Yields the examples of this part."""
        for example in self.source.examples():
            if (document_of(example) in self.documents) == self.inside:
                yield example


@dataclass(frozen=True)
class RowTraining:
    """Columns of a suite's row that one training fills."""

    suite: str
    row: str
    columns: tuple[str, ...]  # names of the columns, which have one pipeline and task
    published: tuple[str, ...]  # names of the published rows that the row continues

    @property
    def trained_row(self) -> str:
        """Name of the row with trained pipelines."""
        return f"{self.row}-trained"

    @property
    def trained_pipeline(self) -> str:
        """Name of the trained pipeline; a row may use one pipeline in several columns."""
        return f"{self.suite}-{self.row}-{self.columns[0]}-trained"

    def declaration(self) -> dict[str, JSON]:
        """Returns the suite that adds these columns to the trained row, as YAML declares it."""
        row: dict[str, JSON] = {
            "published": list(self.published),
            "pipelines": dict.fromkeys(self.columns, self.trained_pipeline),
        }
        return {self.suite: {"rows": {self.trained_row: row}}}


def trainings(options: TrainOptions) -> list[tuple[TrainOptions, RowTraining | None]]:
    """Returns the trainings of a row for one task or all, with the options of their pipelines.

    Without a suite, the options are those of the only training. Raises UserError for other names.
    """
    if not options.suite:
        return [(options, None)]
    suite = suite_named(options.suite, options.config)
    if options.pipeline not in suite.rows:
        rows = ", ".join(suite.rows)
        name = f"{options.pipeline!r} is not a row of it; " if options.pipeline else ""
        raise UserError(f"{name}name a row of the suite {options.suite!r}: {rows}")
    columns: dict[tuple[str, str], list[str]] = {}
    for column, pipeline in suite.pipelines(options.pipeline).items():
        columns.setdefault((pipeline, suite.columns[column].task), []).append(column)
    chosen = {job: n for job, n in columns.items() if fnmatchcase(job[1], options.task or "*")}
    if not chosen:
        tasks = ", ".join(dict.fromkeys(task for _, task in columns))
        raise UserError(
            f"row {options.pipeline!r} has no task {options.task!r}; its tasks: {tasks}"
        )
    row, out = suite.rows[options.pipeline], options.out
    result: list[tuple[TrainOptions, RowTraining | None]] = []
    for (pipeline, task), names in chosen.items():
        folder = out / names[0] if out and len(chosen) > 1 else out
        place = RowTraining(suite.name, options.pipeline, tuple(names), row.published)
        result.append((replace(options, suite="", pipeline=pipeline, task=task, out=folder), place))
    return result


def only_training(options: TrainOptions) -> tuple[TrainOptions, RowTraining | None]:
    """Returns the only training that the options name; raises UserError for several."""
    result = trainings(options)
    if len(result) > 1:
        tasks = ", ".join(single.task for single, _ in result)
        raise UserError(f"row {options.pipeline!r} has several tasks; name one of: {tasks}")
    return result[0]


def one_job(verb: str, options: OneJobOptions) -> tuple[Config, PipelineSpec, TaskSpec]:
    """Returns config, pipeline and task of a verb's options; raises UserError for several."""
    names = [options.pipeline] if options.pipeline else []
    loaded = load_config(options.config, options.settings, names)
    point = _only(verb, "pipeline", loaded.select(names))
    tasks = loaded.select_tasks(point, [options.task] if options.task else [])
    return loaded, point, _only(verb, "task", tasks)


def _only(verb: str, kind: str, choices: Sequence[T]) -> T:
    if len(choices) > 1:
        names = few([choice.name for choice in choices])
        raise UserError(f"{verb} takes one {kind}, but got {len(choices)}: {names}; name one")
    return choices[0]
