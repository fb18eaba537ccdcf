"""Command line of the recipes: `python -m recipes.NAME SETTINGS --out FOLDER`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from leporello.cli.options import progress_bar
from leporello.core.environment.extras import require
from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.engine.progress import show_progress_with
from leporello.training.model_card import RECORD, check_free, new_folder
from recipes.settings import read_settings

# Packages that a recipe needs in addition to the base installation.
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "answers": ("torch", "transformers", "onnx"),
    "verdicts": ("torch", "transformers", "onnx"),
}
_USERS_MISTAKE, _INTERRUPTED = 2, 130


def main(name: str) -> None:
    """Runs a recipe with the arguments of the command line; a user's mistake ends with status 2."""
    # torch reads these on import; the setting `threads` overrides the first.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.WARNING)
    show_progress_with(progress_bar)
    parser = argparse.ArgumentParser(prog=f"python -m recipes.{name}")
    parser.add_argument("settings", type=Path, help="YAML or JSON file of the recipe's settings")
    parser.add_argument("--out", type=Path, help=f"folder to write; default: models/{name}")
    parser.add_argument("--update", action="store_true", help="replace an earlier training")
    arguments = parser.parse_args()
    out = arguments.out or Path("models") / name
    try:
        record = run_recipe(name, arguments.settings, out, update=arguments.update)
    except UserError as error:
        print(error, file=sys.stderr)
        raise SystemExit(_USERS_MISTAKE) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(_INTERRUPTED) from None
    for score, value in record.get("validation", {}).items():
        print(f"on validation: {score} {value:.3f}")
    print(f"to use it: --set {record['parameter']}={record['folder']}")


def run_recipe(name: str, settings: Path, out: Path, *, update: bool = False) -> dict[str, Any]:
    """Runs a recipe, or resumes it; returns its record.

    Raises UserError if a package is missing, the settings are wrong, or the folder is not free.
    """
    require(f"recipe {name!r}", *_NEEDS.get(name, ()))
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise UserError("a recipe trains in one process: start it without a launcher")
    recipe: Any = import_module(f"recipes.{name}.recipe")
    out = out.resolve()
    check_free(out, update=update)
    values = read_settings(recipe.SETTINGS, settings)
    usage = {
        "folder": str(out / getattr(recipe, "MODEL", "")),
        "parameter": getattr(recipe, "PARAMETER", "reader.model"),
    }
    if hasattr(recipe, "run"):
        return {**usage, **recipe.run(values, out)}
    with new_folder(out) as folder:
        record = {"recipe": name, **recipe.train(values, folder / name)}
        write_json(folder / RECORD, record)
    return {**usage, **record}
