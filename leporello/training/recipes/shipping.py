"""What recipes of small heads share: settings, what must not be learnt from, what is shipped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from leporello.config.classes import ClassError, load_file
from leporello.config.parameters import parameters, validate
from leporello.config.tree import read_tree
from leporello.core.errors import ConfigError, UserError, did_you_mean
from leporello.core.files import write_json
from leporello.models.weights import Arrays, pack, write_model
from leporello.training.model_card import RECORD
from leporello.training.model_folder import check_free, written

_Settings = TypeVar("_Settings")


def read_settings(kind: Callable[..., _Settings], path: Path) -> _Settings:
    """Returns settings from a YAML or JSON file; relative paths in it count from its folder.

    Args:
        kind: Dataclass of the settings.
        path: The file.

    Raises:
        ConfigError: With all that is wrong with the file.
    """
    tree, allowed = read_tree(path), parameters(kind)
    values: dict[str, Any] = {}
    faults = []
    for name, child in tree.items.items():
        if name not in allowed:
            faults.append(child.fault(f"there is no setting {name!r}{did_you_mean(name, allowed)}"))
            continue
        values[name], fault = validate(allowed[name], child)
        if fault:
            faults.append(child.fault(f"{name}: {fault}"))
    faults += [
        tree.fault(f"needs the setting {parameter}")
        for parameter in allowed.values()
        if parameter.required and parameter.name not in tree.items
    ]
    if faults:
        raise ConfigError(faults)
    return kind(**{name: _placed(value, path.parent) for name, value in values.items()})


def _placed(value: object, folder: Path) -> object:
    if isinstance(value, Path):
        return folder / value.expanduser()
    return tuple(_placed(item, folder) for item in value) if isinstance(value, tuple) else value


def exclusion(path: Path | None, share: float | None = None) -> Callable[[str], bool]:
    """Returns the test of a text that must not be learnt from.

    Args:
        path: Python file with `is_apart(text)`, which is run; None for a test that nothing meets.
        share: Share of a text that the file must know, its function's second argument; None for its
            default.

    Raises:
        UserError: The file cannot be read, or has no such function.
    """
    if path is None:
        return lambda _: False
    try:
        is_apart = getattr(load_file(path), "is_apart", None)
    except ClassError as error:
        raise UserError(f"exclude: {error}") from None
    if not callable(is_apart):
        raise UserError(f"exclude: {path} has no function `is_apart`")
    rest = () if share is None else (share,)
    return lambda text: bool(is_apart(text, *rest))


def trained(
    name: str,
    kind: Callable[..., _Settings],
    train: Callable[[_Settings, Path], Mapping[str, Any]],
    settings: Path,
    out: Path,
    *,
    update: bool,
) -> dict[str, Any]:
    """Trains by settings of a file, and writes what is shipped with a record of it.

    Args:
        name: Name of the recipe, and of the folder in `out` that is shipped.
        kind: Dataclass of the settings.
        train: Function that writes the shipped folder, and returns what was measured.
        settings: YAML or JSON file.
        out: Folder that is written.
        update: Whether to replace what an earlier training left.

    Raises:
        UserError: A mistake of the user's.
    """
    check_free(out, update=update)
    read = read_settings(kind, settings)
    with written(out) as folder:
        done = {"recipe": name, **train(read, folder / name)}
        write_json(folder / RECORD, done)
    return {"folder": str(out), **done}


def ship(folder: Path, arrays: Arrays, config: Mapping[str, Any]) -> None:
    """Writes arrays, and a `config.json` with their checksum.

    Args:
        folder: Folder that is written.
        arrays: Arrays by name; those of two dimensions are rounded to 8 bits.
        config: Keys of the config besides the checksum.
    """
    write_model(folder, {"weights.safetensors": pack(arrays)}, config)
