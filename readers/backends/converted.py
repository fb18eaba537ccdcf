"""Models in the format of another library: converted once into the cache, and kept there."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

from leporello.core.errors import UserError
from leporello.models.locate import cache_directory, model_fingerprint

Fill: TypeAlias = Callable[[Path], None]

_FAULTS = (ValueError, RuntimeError, NotImplementedError, AttributeError, KeyError, TypeError)

_log = logging.getLogger("leporello")


def converted(model: str, library: str, made_of: Sequence[object], fill: Fill) -> Path:
    """Returns the folder with a converted model; converts it at most once.

    It is named by the model's content and what converts it. It is filled beside its place and
    renamed into it, so it is there wholly or not at all; a second process waits for the first.

    Args:
        model: Path, hub id, or name of a wheel.
        library: Name of the library that takes it, as it is written, such as `CTranslate2`.
        made_of: Values that the result depends on besides, as JSON.
        fill: A function that writes it into the folder that it is given, which is not there yet.

    Raises:
        UserError: There is no such model, it has no safetensors, or it cannot be converted.
    """
    from filelock import FileLock

    folder = cache_directory() / "models" / _name(model, library, made_of)
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                _fill(folder, model, library, fill)
    except OSError as error:
        raise UserError(
            f"model {model!r} cannot be converted for {library} in {folder.parent}:"
            f" {error.strerror or error}; LEPORELLO_CACHE names another place"
        ) from error
    return folder


def config_of(model: str) -> dict[str, Any]:
    """Returns the settings of a model that lies in a folder; nothing of others."""
    file = Path(model).expanduser() / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a hub id, or what is told when the model is loaded
        return {}
    return config if isinstance(config, dict) else {}


def refuse_type(model: str, model_type: object, types: Sequence[str], backend: str) -> None:
    """Raises ValueError for a model type that a backend lacks, or that was never tried."""
    if model_type not in types:
        raise ValueError(
            f"backend: {backend} does not run {model_type!r}, the type of model {model!r}; it runs"
            f" {', '.join(types)}. Leave backend out: transformers runs it"
        )


def _name(model: str, library: str, made_of: Sequence[object]) -> str:
    """Returns a folder's name; the content of the model is part of it, and what converts it."""
    package = library.lower().replace(" ", "")
    parts = [model_fingerprint(model), version(package), version("transformers"), *made_of]
    digest = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    return f"{Path(model).name}-{package}-{digest}"


def _fill(folder: Path, model: str, library: str, fill: Fill) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed
    _log.info("converting %s for %s, once", model, library)
    try:
        fill(partial)
    except _FAULTS as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise UserError(
            f"model {model!r} cannot be converted for {library}: {error}."
            f" Leave backend out: transformers runs it"
        ) from error
    for file in partial.iterdir():
        file.chmod(0o444)
    partial.replace(folder)
