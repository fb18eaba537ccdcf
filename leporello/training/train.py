"""Trains the reader of a pipeline, and writes a model and a config that uses it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache
from leporello.config import PipelineSpec, TaskSpec, load_config
from leporello.core.errors import ConfigError, UserError
from leporello.core.files import cache_directory
from leporello.core.training import Training
from leporello.core.yaml.tree import ConfigSource
from leporello.jobs.directory import safe_name
from leporello.jobs.options import TrainOptions, takes
from leporello.training.fine_tuning import check_trainable, tuner_of
from leporello.training.model_card import CONFIG, TrainingRecord, check_free
from leporello.training.splits import RowTraining, one_job, only_training, trainings
from leporello.training.splits import split as splits_of
from leporello.training.training_run import TrainingRun

_log = logging.getLogger("leporello")


@dataclass(frozen=True)
class Trained:
    """Result of `train`.

    Attributes:
        pipeline: Name of the pipeline that uses the trained reader.
        config: File that declares the pipeline.
        task: Name of the task that the reader was trained on.
        examples: Number of training examples.
        inputs: Number of inputs that the reader was trained on.
        skipped: Number of examples that have no references, or that failed.
        validated: Description of the validation data; empty without validation.
        scores: Scores of the complete pipeline on the validation data, by name.
        shared: Number of documents in both the training and the validation data.
        row: Name of the suite's row that uses the trained reader; empty without a suite.
    """

    pipeline: str
    config: Path
    task: str
    examples: int
    inputs: int
    skipped: int
    validated: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    shared: int = 0
    row: str = ""


@takes(TrainOptions)
def train(options: TrainOptions) -> Trained:
    """Trains the reader of a pipeline on the inputs that it gets there."""
    return _trained([only_training(options)], options)[0]


@takes(TrainOptions)
def train_all(options: TrainOptions) -> list[Trained]:
    """Trains the readers of all pipelines of a suite's row, or else of one pipeline.

    Pipelines of a row are skipped if they were trained with the same settings, sources, models and
    data, unless `update` is set.
    """
    return _trained(trainings(options), options)


def _trained(
    trainings: Sequence[tuple[TrainOptions, RowTraining | None]], options: TrainOptions
) -> list[Trained]:
    runs = [_prepared(*training) for training in trainings]
    skips = bool(options.suite) and not options.update
    finished = [run.finished() if skips else None for run in runs]
    for run, record in zip(runs, finished, strict=True):
        if record:
            _log.info("%s is trained in %s; --update trains it again", record.pipeline, run.folder)
        else:
            # All data are checked first, since the first training may take hours.
            check_free(run.folder, update=options.update)
            run.splits.check()
    return [
        _as_trained(record or run.train(), run) for run, record in zip(runs, finished, strict=True)
    ]


def _prepared(options: TrainOptions, place: RowTraining | None) -> TrainingRun:
    """Returns the training, after all checks that need no data."""
    loaded, target, task = one_job("train", options)
    point = target
    if learner := target.training.given.get("pipeline"):
        # The task of the target has no training data, so the learner has its own.
        chosen = "" if place or task.name in target.tasks else options.task
        _, point, task = one_job("train", replace(options, pipeline=learner, task=chosen))
    folder = (options.out or Path("models") / safe_name(f"{target.name}+{task.name}")).resolve()
    stages = point.build()
    # All checks come before data are read, since a training takes hours.
    settings = _settings(point, task)
    check_trainable(point.name, stages, settings)
    _check_choices(point.name, settings.choices, options.config, options.settings)
    # Fine-tuning needs validation, but no split is used for it by default (decision 26).
    needed = bool(tuner_of(stages.reader) or settings.choices)
    cache = Cache(cache_directory()) if options.cached else None
    sides = splits_of(task, options.split, settings, options.limit, cache, needed=needed)
    # A run.yaml declares the points of a sweep as pipelines.
    is_declared = target.name in loaded.pipelines
    base = target.name if is_declared else target.name.partition("@")[0]
    data = point, stages, settings, sides
    return TrainingRun(*data, target, base, place, folder, tuple(options.config))


def _check_choices(
    name: str, choices: Sequence[str], config: Sequence[ConfigSource], overrides: Sequence[str]
) -> None:
    """Raises `UserError` for choices that are invalid, or that the user has set."""
    paths = {text.partition("=")[0].strip() for text in choices}
    chosen = [path for text in overrides if (path := text.partition("=")[0].strip()) in paths]
    if chosen:
        raise UserError(
            f"{name}.train.choose chooses {chosen[0]}, which --set also sets:"
            " --set train.choose=[] disables the choice and keeps the value"
        )
    try:
        # Loaded just to see the error now, instead of after the training.
        load_config(config, [*overrides, *choices], [name])
    except ConfigError as error:
        raise UserError(f"{name}.train.choose: {error}") from None


def _settings(point: PipelineSpec, task: TaskSpec) -> Training:
    try:
        return point.training.settings(task.name)
    except ValueError as error:
        raise UserError(f"{point.name}.train: {error}") from None


def _as_trained(record: TrainingRecord, run: TrainingRun) -> Trained:
    counts: Any = record.train
    return Trained(
        record.pipeline,
        run.folder / CONFIG,
        record.task,
        counts["examples"],
        counts["inputs"],
        counts["without references"] + counts["failed"],
        record.validated,
        record.scores,
        record.shared,
        run.place.trained_row if run.place else "",
    )
