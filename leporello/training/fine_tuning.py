"""Fine-tunes a reader's model at one learning rate after the other; goes on after a kill."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from filelock import FileLock, Timeout

from leporello.config import Pipeline
from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import read_json, write_json
from leporello.core.hashing import differences
from leporello.core.protocols import FineTunes, Learns
from leporello.core.records import JSON
from leporello.core.training import Checkpoint, Training, TrainingPairs, TuningJob, TuningResult
from leporello.engine.progress import Progress
from leporello.models.distributed import destroy_process_group, is_main_process
from leporello.training.training_pairs import check_supervises

_SETTINGS = "recipe.json"


@dataclass(frozen=True)
class RateResult:
    """A checkpoint at one learning rate."""

    rate: float
    checkpoint: Checkpoint
    tuning: TuningResult


@dataclass(frozen=True)
class CheckpointDirectory:
    """Where a training keeps its checkpoints until it is finished.

    Attributes:
        path: Directory beside the place of the model.
        pattern: Pattern of the folders in it that have checkpoints.
    """

    path: Path
    pattern: str = "rate-*"

    @contextmanager
    def locked(self, settings: Mapping[str, JSON], *, update: bool) -> Iterator[None]:
        """Keeps other processes out; what is there was left by a training with the same settings.

        Args:
            settings: Settings, sources, models and data that the training depends on, as JSON.
            update: Whether what a training with other settings left may be removed.

        Raises:
            UserError: Another process trains there, or one with other settings left something.
        """
        if not is_main_process():  # the first holds it for all
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=0):
                self._compare(settings, update=update)
                try:
                    yield
                finally:
                    if not self._checkpoints():
                        self.remove()  # nothing to go on from
        except Timeout:
            raise UserError(f"{self.path}: another process is training there") from None

    def remove(self) -> None:
        """Removes all that is there."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _checkpoints(self) -> bool:
        return any(self.path.glob(f"{self.pattern}/checkpoint-*"))

    def _compare(self, settings: Mapping[str, JSON], *, update: bool) -> None:
        file = self.path / _SETTINGS
        unfinished = file.exists() and self._checkpoints()
        changed = list(differences(read_json(file), settings)) if unfinished else []
        if changed and not update:
            listing = "\n".join(f"  {text}" for text in changed[:5])
            raise UserError(
                f"{self.path} has checkpoints of a training with something else:\n{listing}\n"
                "--update begins anew, --out names another place"
            )
        if changed or not unfinished:
            for path in self.path.glob(self.pattern):
                shutil.rmtree(path)
        write_json(file, dict(settings))


def tune_at_rates(
    reader: FineTunes,
    settings: Training,
    train: TrainingPairs,
    validation: TrainingPairs,
    unfinished: CheckpointDirectory,
) -> list[RateResult]:
    """Fine-tunes at each learning rate; what may be kept, each at its rate.

    Raises:
        UserError: As what fine-tunes raises.
    """
    tune = getattr(_module(reader), reader.trainer.partition(":")[2])
    results = []
    for rate in settings.rates:
        folder = unfinished.path / f"rate-{rate:g}"
        with Progress(f"training at {rate:g}") as progress:
            job = TuningJob(train, validation, settings.at(rate), folder, progress.example)
            tuning: TuningResult = tune(reader, job)
        results += [RateResult(rate, checkpoint, tuning) for checkpoint in tuning.candidates]
    destroy_process_group()
    return results


def check_settings(reader: FineTunes, settings: Training) -> None:
    """Refuses what this machine cannot follow, before anything is read.

    Raises:
        UserError: It cannot, or what fine-tunes is not installed.
    """
    check = getattr(_module(reader), "check", None)
    if check:
        check(reader, settings)
    if settings.best_by == "metric":
        require("train.best_by: metric", "tensorboard")


def _module(reader: FineTunes) -> ModuleType:
    require("fine-tuning", "torch", "transformers")
    # By name: what readers import enters the signature of every run (decision 26).
    return importlib.import_module(reader.trainer.partition(":")[0])


def tuner_of(reader: Any) -> str:  # noqa: ANN401 -- any reader
    """Returns what fine-tunes a reader's model; empty if it learns by itself, or not at all."""
    return reader.trainer if isinstance(reader, FineTunes) else ""


def check_trainable(pipeline: str, stages: Pipeline) -> None:
    """Refuses a pipeline whose reader learns nothing, or whose combiner cannot say what.

    Raises:
        UserError: It is such.
    """
    reader = stages.reader
    if not (tuner_of(reader) or isinstance(reader, Learns)):
        raise UserError(
            f"pipeline {pipeline!r} cannot be trained: its reader {type(reader).__name__} has no"
            " method `learn`, and no model that is fine-tuned; docs/training.md names those that"
            " have"
        )
    check_supervises(pipeline, stages)
