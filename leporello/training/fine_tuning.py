"""Fine-tunes a reader's model at one learning rate after the other; goes on after a kill."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from leporello.config import Training
from leporello.directory import read_json, write_json
from leporello.errors import UserError
from leporello.progress import Progress
from leporello.records import JSON
from leporello.signature import differences
from leporello.stages import FineTunes
from leporello.training.course import Candidate, Course, Lessons, Tuned

__all__ = ["Attempt", "Unfinished", "attempts", "is_main_process"]

_RECIPE = "recipe.json"


@dataclass(frozen=True)
class Attempt:
    """A checkpoint at one learning rate."""

    rate: float
    candidate: Candidate
    tuned: Tuned


def is_main_process() -> bool:
    """Says whether this process is the only one, or the first that accelerate's launcher began."""
    return os.environ.get("RANK", "0") == "0"


@dataclass(frozen=True)
class Unfinished:
    """Where a training keeps its checkpoints until it is finished.

    Attributes:
        path: Beside the place of the model.
    """

    path: Path

    @contextmanager
    def held(self, recipe: Mapping[str, JSON], *, update: bool) -> Iterator[None]:
        """Keeps other processes out; what is there was left by a training by the same recipe.

        Args:
            recipe: All that the training depends on.
            update: Whether what another recipe left may be removed.

        Raises:
            UserError: Another process trains there, or another recipe left something.
        """
        if not is_main_process():  # the first holds it for all
            yield
            return
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.path / ".lock", timeout=0):
                self._compare(recipe, update=update)
                try:
                    yield
                finally:
                    if not any(self.path.glob("rate-*/checkpoint-*")):
                        self.remove()  # nothing to go on from
        except Timeout:
            raise UserError(f"{self.path}: another process is training there") from None

    def remove(self) -> None:
        """Removes all that is there."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _compare(self, recipe: Mapping[str, JSON], *, update: bool) -> None:
        file = self.path / _RECIPE
        changed = list(differences(read_json(file), recipe)) if file.exists() else []
        if changed and not update:
            told = "\n".join(f"  {text}" for text in changed[:5])
            raise UserError(
                f"{self.path} has checkpoints of a training with something else:\n{told}\n"
                "--update begins anew, --out names another place"
            )
        if changed:
            for path in self.path.glob("rate-*"):
                shutil.rmtree(path)
        write_json(file, dict(recipe))


def attempts(
    reader: FineTunes,
    settings: Training,
    train: Lessons,
    validation: Lessons,
    unfinished: Unfinished,
) -> list[Attempt]:
    """Fine-tunes at each learning rate; what may be kept, each at its rate.

    Raises:
        UserError: As what fine-tunes raises.
    """
    tune = _tuner(reader)
    made = []
    for rate in settings.rates:
        folder = unfinished.path / f"rate-{rate:g}"
        with Progress(f"training at {rate:g}") as progress:
            course = Course(train, validation, settings.at(rate), folder, progress.example)
            tuned = tune(reader, course)
        made += [Attempt(rate, candidate, tuned) for candidate in tuned.candidates]
    return made


def _tuner(reader: FineTunes) -> Callable[[FineTunes, Course], Tuned]:
    module, _, function = reader.tuner.partition(":")
    try:
        found: Callable[[FineTunes, Course], Tuned] = getattr(
            importlib.import_module(module), function
        )
    except ImportError as error:
        raise UserError(
            f"fine-tuning needs what is not installed ({error}): pip install 'leporello[train]'"
        ) from error
    return found
