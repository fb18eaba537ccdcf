"""Whole trainings of the readers that come with the package, from files of data to shipped files.

A recipe is a package here, named as `train --recipe` names it. Its module `recipe` has the class of
its settings as `SETTINGS`, and `train(settings, folder)`, which writes what is shipped and returns
what was measured; or `run`, where a training goes on after a kill. `MODEL` is the folder inside
that `PARAMETER` names, by default a reader's `model`. A recipe may touch what `training` may;
stages are found by name. Begin with `run_recipe`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from leporello.core.environment.extras import require
from leporello.core.errors import UserError, did_you_mean
from leporello.core.files import write_json
from leporello.models.distributed import processes
from leporello.training.model_card import RECORD, check_free, written
from leporello.training.recipes.settings import read_settings

__all__ = ["RECIPES", "run_recipe"]

# What each needs beside the base install.
RECIPES: Mapping[str, tuple[str, ...]] = {
    "answers": ("torch", "transformers", "onnx"),
    "choices": (),
    "plots": (),
    "polarity": (),
    "routes": (),
    "statements": (),
    "style": (),
    "summaries": (),
    "verdicts": ("torch", "transformers", "onnx"),
}


def run_recipe(name: str, settings: Path, out: Path, *, update: bool = False) -> dict[str, Any]:
    """Carries out a recipe, or goes on with it where it was stopped; returns what came of it.

    Args:
        name: Name of the recipe.
        settings: YAML or JSON file with its settings.
        out: Folder of what is shipped.
        update: Whether to replace what an earlier training left, finished or not.

    Raises:
        UserError: A mistake of the user's.
    """
    if name not in RECIPES:
        raise UserError(f"there is no recipe {name!r}{did_you_mean(name, RECIPES)}")
    if needed := RECIPES[name]:
        require(f"recipe {name!r}", *needed)
    if processes() > 1:
        raise UserError("a recipe trains in one process: start it without a launcher")
    recipe: Any = import_module(f"{__name__}.{name}.recipe")
    out = out.resolve()
    check_free(out, update=update)
    read = read_settings(recipe.SETTINGS, settings)
    used = {
        "folder": str(out / getattr(recipe, "MODEL", "")),
        "parameter": getattr(recipe, "PARAMETER", "reader.model"),
    }
    if hasattr(recipe, "run"):
        return {**used, **recipe.run(read, out, update=update)}
    with written(out) as folder:
        done = {"recipe": name, **recipe.train(read, folder / name)}
        write_json(folder / RECORD, done)
    return {**used, **done}
