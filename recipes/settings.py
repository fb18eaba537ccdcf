"""Reads settings files of recipes, and functions that exclude texts from training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from leporello.config.parameters import parameters, validate
from leporello.core.environment.classes import ClassError, load_file
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.yaml.tree import Tree, read_tree

_Settings = TypeVar("_Settings")


def read_settings(kind: type[_Settings], path: Path) -> _Settings:
    """Returns settings from a YAML or JSON file; relative paths count from its folder."""
    faults: list[Fault] = []
    relative = _read(kind, read_tree(path), faults)
    if faults:
        raise ConfigError(faults)
    settings: _Settings = _resolved(relative, path.parent)
    return settings


def _read(kind: type, tree: Tree, faults: list[Fault]) -> Any:  # noqa: ANN401 -- an instance of `kind`
    """Returns settings from a mapping, or None; adds errors to `faults`."""
    allowed, before = parameters(kind), len(faults)
    values: dict[str, Any] = {}
    for name, child in tree.items.items():
        if name not in allowed:
            faults.append(child.fault(f"there is no setting {name!r}{did_you_mean(name, allowed)}"))
            continue
        part = next(iter(get_args(allowed[name].annotation)), None)
        if is_dataclass(part) and isinstance(child.value, list):
            values[name] = tuple(_read(part, item, faults) for item in child.value)  # type: ignore[arg-type]  # a class
            continue
        try:
            values[name] = validate(allowed[name], child)
        except ValueError as error:
            faults.append(child.fault(f"{name}: {error}"))
    missing = (p for p in allowed.values() if p.required and p.name not in tree.items)
    faults.extend(tree.fault(f"needs the setting {parameter}") for parameter in missing)
    if len(faults) > before:
        return None
    try:
        return kind(**values)
    except ValueError as error:
        faults.append(tree.fault(str(error)))
        return None


def _resolved(value: Any, folder: Path) -> Any:  # noqa: ANN401 -- the type of `value`
    """Returns settings with relative paths resolved against a folder."""
    if isinstance(value, Path):
        return folder / value.expanduser()
    if isinstance(value, tuple):
        return tuple(_resolved(item, folder) for item in value)
    if isinstance(value, dict):
        return {key: _resolved(item, folder) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            field.name: _resolved(getattr(value, field.name), folder) for field in fields(value)
        }
        return replace(value, **parts)
    return value


def exclusion(path: Path | None, share: float | None = None) -> Callable[[str], bool]:
    """Returns a function that decides whether a text is excluded from training.

    `path` is a Python file with `is_apart(text)`, which is run; None excludes nothing. `share` is
    its second argument, the share of a text that must match; None leaves the default of the file.
    """
    if path is None:
        return lambda _: False
    try:
        is_apart = getattr(load_file(path), "is_apart", None)
    except ClassError as error:
        raise UserError(f"exclude: {error}") from None
    if not callable(is_apart):
        raise UserError(f"exclude: {path} has no function `is_apart`")
    arguments = () if share is None else (share,)
    return lambda text: bool(is_apart(text, *arguments))
