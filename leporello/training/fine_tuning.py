"""Fine-tunes the model of a reader at several learning rates, and resumes after an interruption."""

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
    """Directory of the checkpoints of an unfinished training."""

    path: Path  # directory beside that of the model
    pattern: str = "rate-*"

    @contextmanager
    def locked(self, settings: Mapping[str, JSON], *, update: bool) -> Iterator[None]:
        """Locks the directory; raises UserError if its checkpoints have other settings.

        Settings are JSON of all that the training depends on. With `update`, checkpoints of other
        settings are removed.
        """
        if not is_main_process():  # the main process locks it for all
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=0):
                self._compare(settings, update=update)
                try:
                    yield
                finally:
                    if not self._has_checkpoints():
                        # A failure before the first checkpoint must not block other settings.
                        self.remove()  # without a checkpoint, nothing can be resumed
        except Timeout:
            raise UserError(f"{self.path}: another process is training in this folder") from None

    def remove(self) -> None:
        """Removes the directory."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _has_checkpoints(self) -> bool:
        return any(self.path.glob(f"{self.pattern}/checkpoint-*"))

    def _compare(self, settings: Mapping[str, JSON], *, update: bool) -> None:
        file = self.path / _SETTINGS
        unfinished = file.exists() and self._has_checkpoints()
        changed = list(differences(read_json(file), settings)) if unfinished else []
        if changed and not update:
            listing = "\n".join(f"  {text}" for text in changed[:5])
            raise UserError(
                f"{self.path} has checkpoints of a training with other settings:\n{listing}\n"
                "--update starts over, --out names another folder"
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
    """Fine-tunes at each learning rate; returns all candidates for the best checkpoint."""
    tune = getattr(_module(reader), reader.trainer.partition(":")[2])
    results = []
    for rate in settings.rates:
        # A folder for each rate, so a killed sweep repeats only the rate that it was in.
        folder = unfinished.path / f"rate-{rate:g}"
        with Progress(f"training at {rate:g}") as progress:
            job = TuningJob(train, validation, settings.at(rate), folder, progress.example)
            tuning: TuningResult = tune(reader, job)
        results += [RateResult(rate, checkpoint, tuning) for checkpoint in tuning.candidates]
    # Only this process scores checkpoints later; a group would wait for the others and time out.
    destroy_process_group()
    return results


def check_settings(reader: FineTunes, settings: Training) -> None:
    """Raises UserError, before data are read, if this machine does not support the settings."""
    check = getattr(_module(reader), "check", None)
    if check:
        check(reader, settings)
    if settings.best_by == "metric":
        require("train.best_by: metric", "tensorboard")


def _module(reader: FineTunes) -> ModuleType:
    require("fine-tuning", "torch", "transformers")
    # Imported by name, since the reader's imports are in the signature of every run (decision 26).
    return importlib.import_module(reader.trainer.partition(":")[0])


def tuner_of(reader: Any) -> str:  # noqa: ANN401 -- any reader
    """Returns the trainer of a reader's model; empty if the reader has none."""
    return reader.trainer if isinstance(reader, FineTunes) else ""


def check_trainable(pipeline: str, stages: Pipeline) -> None:
    """Raises UserError if the reader cannot be trained, or the combiner gives no targets."""
    reader = stages.reader
    if not (tuner_of(reader) or isinstance(reader, Learns)):
        raise UserError(
            f"pipeline {pipeline!r} cannot be trained: its reader {type(reader).__name__} has"
            " neither a method `learn` nor a model to fine-tune; docs/training.md lists readers"
            " that can be trained"
        )
    check_supervises(pipeline, stages)
