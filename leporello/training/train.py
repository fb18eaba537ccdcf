"""Trains the reader of a pipeline, and leaves a model and a config that uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leporello.cache.store import Cache
from leporello.config import Config, PipelineSpec, TaskSpec, load_config
from leporello.core.errors import ConfigError, UserError
from leporello.core.training import Training
from leporello.core.yaml.tree import ConfigSource
from leporello.jobs.directory import safe_name
from leporello.jobs.options import TrainOptions, takes
from leporello.models.distributed import main_process_only, processes
from leporello.models.locate import cache_directory
from leporello.training.fine_tuning import check_settings, check_trainable, tuner_of
from leporello.training.model_card import CONFIG, TrainingRecord, check_free
from leporello.training.splits import one_job
from leporello.training.splits import split as splits_of
from leporello.training.training_run import TrainingRun


@dataclass(frozen=True)
class Trained:
    """A reader that was trained.

    Attributes:
        pipeline: Name of the pipeline that uses it.
        config: The file that declares it.
        task: Name of the task that it was trained on.
        examples: Number of examples that were looked at.
        inputs: Number of inputs that the reader learnt from.
        skipped: Number of examples without references, or that failed.
        validated: Name of what it was validated on; empty if nothing.
        scores: Scores on that, through the pipeline, by name.
        shared: Number of documents that were both learnt from and validated on.
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


@main_process_only()
@takes(TrainOptions)
def train(options: TrainOptions) -> Trained:
    """Trains a pipeline's reader on what the pipeline itself would have it read.

    Raises:
        UserError: A mistake of the user's, or nothing to learn from.
    """
    loaded, point, chosen = one_job("train", options)
    folder = options.out or Path("models") / safe_name(f"{point.name}+{chosen.name}")
    folder = folder.resolve()
    stages = point.build()
    check_trainable(point.name, stages)
    check_free(folder, update=options.update)
    settings = _settings(point, chosen)
    _check_choices(point.name, settings.choices, options.config, options.settings)
    _check_machine(stages.reader, settings)
    # What is fine-tuned must be validated, and no split is taken unasked (decision 26).
    needed = bool(tuner_of(stages.reader) or settings.choices)
    sides = splits_of(chosen, options.split, settings, needed=needed)
    base = _base(loaded, point)
    cache = Cache(cache_directory()) if options.cached else None
    made = TrainingRun(
        point, base, stages, settings, sides, folder, tuple(options.config), options.limit, cache
    )
    return _as_trained(made.train(update=options.update), folder)


def _check_machine(reader: Any, settings: Training) -> None:  # noqa: ANN401 -- any reader
    """Refuses settings that cannot be followed here."""
    if tuner_of(reader):
        check_settings(reader, settings)
    elif processes() > 1:
        raise UserError(
            f"{type(reader).__name__} learns by itself, in one process, and a launcher began"
            f" {processes()}: train without it"
        )


def _check_choices(
    name: str, choices: Sequence[str], config: Sequence[ConfigSource], overrides: Sequence[str]
) -> None:
    """Refuses what cannot be chosen, and what the user has chosen already."""
    paths = {text.partition("=")[0].strip() for text in choices}
    chosen = [path for text in overrides if (path := text.partition("=")[0].strip()) in paths]
    if chosen:
        raise UserError(
            f"{name}.train.choose chooses {chosen[0]} on validation, and --set gives it:"
            " --set train.choose=[] chooses nothing, and keeps what is given"
        )
    try:
        load_config(config, [*overrides, *choices], [name])
    except ConfigError as error:
        raise UserError(f"{name}.train.choose: {error}") from None


def _settings(point: PipelineSpec, task: TaskSpec) -> Training:
    try:
        return point.training.settings(task.name)
    except ValueError as error:
        raise UserError(f"{point.name}.train: {error}") from None


def _base(loaded: Config, point: PipelineSpec) -> str:
    """Returns the pipeline that a point is of; one of a run.yaml is named as a point."""
    return point.name if point.name in loaded.pipelines else point.name.partition("@")[0]


def _as_trained(record: TrainingRecord, folder: Path) -> Trained:
    counts: Any = record.train
    return Trained(
        record.pipeline,
        folder / CONFIG,
        record.task,
        counts["examples"],
        counts["inputs"],
        counts["without references"] + counts["failed"],
        record.validated,
        record.scores,
        record.shared,
    )
