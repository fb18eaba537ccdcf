"""Training targets, trained models on disk, and answers of readers that learn classes.

A model is a folder with `model.skops` and its settings, without pickles. skops creates only objects
of trusted types, and files with any other type are rejected, so a loaded model cannot run code.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.core.records import JSON
from leporello.models.locate import locate

_MODEL, _SETTINGS = "model.skops", "settings.json"
_CHECKSUMS = "config.json"  # of the models in the package
_VERSION = 1  # of the features and the file; others are rejected


def is_trained_here(model: str) -> bool:
    """Returns whether a model is a folder from `save`, not a transformers model."""
    return (Path(locate(model)) / _MODEL).exists()


def save(directory: Path, reader: str, model: object) -> Mapping[str, JSON]:
    """Writes a model; returns the parameters of a reader with it."""
    import skops.io

    folder = directory / "model"
    folder.mkdir(parents=True)
    skops.io.dump(model, folder / _MODEL)
    write_json(folder / _SETTINGS, {"reader": reader, "version": _VERSION})
    return {"model": "./model"}


def load(model: str | None, reader: str) -> Any:  # noqa: ANN401 -- scikit-learn has no types
    """Returns a model; raises UserError if it is missing, damaged or unsafe."""
    if model is None:
        raise UserError(
            f"{reader} has no model, since it was not trained. Train it on a task with references:"
            "\n  python run_pipeline.py train PIPELINE --task TASK\n"
            "and use the config that this writes, or set its parameter `model` to a folder"
        )
    folder = Path(locate(model))
    if (folder / _CHECKSUMS).exists():
        from leporello.models.weights import ModelFolder

        for name in (_MODEL, _SETTINGS):
            ModelFolder(folder).checked(name)
    _check_settings(model, folder / _SETTINGS, reader)
    import skops.io

    file = folder / _MODEL
    try:
        _check_types(model, skops.io.get_untrusted_types(file=file))
        # Only skops' own types are trusted, so a model from elsewhere runs no code.
        return skops.io.load(file, trusted=[])
    except UserError:
        raise
    except Exception as error:  # damaged files and other versions raise any exception
        message = str(error).partition("\n")[0]
        raise UserError(
            f"model {model!r} could not be loaded from {file}: {type(error).__name__}: {message}\n"
            "It is damaged, or was written with other versions of scikit-learn and skops: train it"
            " again"
        ) from error


def _check_settings(model: str, file: Path, reader: str) -> None:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        trained_for, version = settings["reader"], settings["version"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"model {model!r}: {file} is missing or damaged ({error}); train it again"
        ) from error
    if trained_for != reader:
        raise UserError(f"model {model!r} was trained for {trained_for}, not for {reader}")
    if version != _VERSION:
        raise UserError(
            f"model {model!r} was trained by another version of Leporello; train it again"
        )


def _check_types(model: str, untrusted: Iterable[str]) -> None:
    if names := sorted(untrusted):
        raise UserError(
            f"model {model!r} contains objects that can run code ({', '.join(names[:3])}), so it is"
            " not loaded; `train` never writes such models"
        )


_MIN_EXAMPLES = 4  # of a class; fewer do not generalise


def check_targets(reader: str, targets: Sequence[str], allowed: Sequence[str] = ()) -> None:
    """Checks that a classifier can learn the targets."""
    counts = Counter(targets)
    shown = ", ".join(f"{label!r:.40} {count}" for label, count in counts.most_common(8))
    foreign = [label for label in counts if allowed and label not in allowed]
    if foreign:
        raise UserError(
            f"{reader} learns {' and '.join(map(repr, allowed))}, but the combiner's target is"
            f" {foreign[0]!r:.80}: use the combiner AssignAuthors or ClusterAuthors"
        )
    # Checked before the training, since scikit-learn's message would name no remedy.
    if len(counts) < 2:  # noqa: PLR2004 -- a choice
        reason = f"all of its {len(targets)} examples are {shown}" if counts else "has no examples"
        raise UserError(
            f"{reader} needs examples of at least two classes, but {reason}; train on more examples"
        )
    rare = [label for label, count in counts.items() if count < _MIN_EXAMPLES]
    if rare:
        raise UserError(
            f"{reader} needs at least {_MIN_EXAMPLES} examples of each class, but there are too few"
            f" of {rare[0]!r:.40} ({shown}). Train on more examples, or on a task whose answers are"
            " labels"
        )


def labelled(
    choices: Sequence[str], probabilities: Mapping[str, float]
) -> tuple[str, tuple[float, ...]]:
    """Returns the most probable label, among the choices if any, and their probabilities."""
    if foreign := [choice for choice in choices if choice not in probabilities]:
        labels = ", ".join(probabilities)
        raise ValueError(f"choice {foreign[0]!r:.80} is not a label of the model ({labels:.400})")
    best = max(choices or probabilities, key=probabilities.__getitem__)
    return best, tuple(probabilities[choice] for choice in choices)
