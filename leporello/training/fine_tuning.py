"""Fine-tunes the model of a reader at several learning rates, and resumes after an interruption."""

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from leporello.config import Pipeline
from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import locked
from leporello.core.hashing import digest
from leporello.core.protocols import FineTunes, Learns
from leporello.core.records import JSON
from leporello.core.training import Training, TrainingPairs, TuningJob, TuningResult
from leporello.engine.progress import Progress
from leporello.training.training_pairs import check_supervises


@contextmanager
def checkpoint_folder(model: Path, settings: JSON) -> Iterator[Path]:
    """Yields a folder for the checkpoints of a model, locked, until the training is finished.

    Its name contains a hash of the settings, which are all that the training depends on, so only
    the same training resumes from its checkpoints.
    """
    unfinished = model.with_name(f"{model.name}.unfinished")
    folder = unfinished / digest(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(unfinished / ".lock", f"{unfinished}: another process is training in this folder"):
        try:
            yield folder
            shutil.rmtree(unfinished, ignore_errors=True)
        finally:
            if not any(unfinished.rglob("checkpoint-*")):  # nothing can be resumed
                shutil.rmtree(unfinished, ignore_errors=True)


def tune_at_rates(
    reader: FineTunes,
    settings: Training,
    train: TrainingPairs,
    validation: TrainingPairs,
    checkpoints: Path,
) -> dict[float, TuningResult]:
    """Fine-tunes at each learning rate."""
    tune = getattr(_module(reader), reader.trainer.partition(":")[2])
    results: dict[float, TuningResult] = {}
    for rate in settings.rates:
        # A folder for each rate, so a killed sweep repeats only the rate that it was in.
        folder = checkpoints / f"rate-{rate:g}"
        with Progress(f"training at {rate:g}") as progress:
            job = TuningJob(train, validation, settings.at(rate), folder, progress.example)
            results[rate] = tune(reader, job)
    return results


def _module(reader: FineTunes) -> ModuleType:
    require("fine-tuning", "torch", "transformers", "tensorboard")
    # Imported by name, since the reader's imports are in the signature of every run (decision 26).
    return importlib.import_module(reader.trainer.partition(":")[0])


def tuner_of(reader: Any) -> str:  # noqa: ANN401 -- any reader
    """Returns the trainer of a reader's model; empty if the reader has none."""
    return reader.trainer if isinstance(reader, FineTunes) else ""


def check_trainable(pipeline: str, stages: Pipeline, settings: Training) -> None:
    """Raises UserError, before data are read, if the reader cannot be trained on this machine."""
    check_supervises(pipeline, stages)
    launched = os.environ.get("WORLD_SIZE", "1"), os.environ.get("ACCELERATE_MIXED_PRECISION", "no")
    if launched != ("1", "no"):
        raise UserError("train uses one process: start it without torchrun or accelerate launch")
    reader = stages.reader
    if tuner_of(reader):
        if check := getattr(_module(reader), "check", None):
            check(reader, settings)
    elif not isinstance(reader, Learns):
        raise UserError(
            f"pipeline {pipeline!r} cannot be trained: its reader {type(reader).__name__} has"
            " neither a method `learn` nor a model to fine-tune; docs/training.md lists readers"
            " that can be trained"
        )
