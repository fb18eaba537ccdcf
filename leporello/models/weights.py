"""Weights as they are shipped: 8 bits for each number, a scale for each row, checksums beside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from leporello.core.errors import UserError
from leporello.core.files import write_json
from leporello.core.records import JSON

_SCALE = ".scale"
_LEFT, _RIGHT = ".left", ".right"

Arrays = dict[str, NDArray[Any]]


class DamagedModelError(UserError):
    """A shipped file is missing or is not what was shipped."""


@dataclass(frozen=True)
class ModelFolder:
    """A folder with a shipped reader.

    Attributes:
        path: Folder with `config.json`, which names every other file and its SHA-256.
    """

    path: Path

    def config(self) -> dict[str, Any]:
        """Returns what `config.json` says.

        Raises:
            DamagedModelError: If it is missing or cannot be read.
        """
        try:
            config = json.loads(self._bytes("config.json"))
        except (ValueError, RecursionError) as error:
            raise DamagedModelError(f"{self.path / 'config.json'} is no JSON: {error}") from None
        if not isinstance(config, dict) or not isinstance(config.get("sha256", {}), dict):
            raise DamagedModelError(f"{self.path / 'config.json'} is not what was shipped")
        return config

    def checked(self, name: str) -> bytes:
        """Returns the bytes of a file that `config.json` lists.

        Args:
            name: Name of the file.

        Raises:
            DamagedModelError: If it is missing, not listed, or not what was shipped.
        """
        wanted = self.config().get("sha256", {}).get(name)
        content = self._bytes(name)
        if wanted is None:
            raise DamagedModelError(f"{self.path / name} is not listed in config.json")
        if hashlib.sha256(content).hexdigest() != wanted:
            raise DamagedModelError(
                f"{self.path / name} is damaged: its SHA-256 is not the one in config.json; "
                "install the package again"
            )
        return content

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise DamagedModelError(
                f"{self.path / name} cannot be read: {error.strerror}"
            ) from None


def write_model(path: Path, files: Mapping[str, bytes], config: Mapping[str, JSON]) -> None:
    """Writes a folder as `ModelFolder` reads it.

    Args:
        path: Folder that is written; what else lies in it stays.
        files: Contents by name.
        config: Keys of `config.json` besides the checksums of these files.
    """
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (path / name).write_bytes(content)
    checksums: JSON = {n: hashlib.sha256(content).hexdigest() for n, content in files.items()}
    write_json(path / "config.json", {**config, "sha256": checksums})


def pack(weights: Arrays, differences: dict[str, tuple[Any, Any]] | None = None) -> bytes:
    """Returns weights as the content of a safetensors file, matrices in 8 bits.

    Every row of a matrix is divided by its greatest absolute value and stored as -127 to 127.

    Args:
        weights: Arrays by name; those of one dimension are stored in 32 bits.
        differences: Pairs of matrices by name, whose product is added to a weight.
    """
    stored: Arrays = {}
    for name, value in weights.items():
        _store(stored, name, value)
    for name, (left, right) in (differences or {}).items():
        _store(stored, name + _LEFT, left)
        _store(stored, name + _RIGHT, right)
    return save(stored)


def _store(stored: Arrays, name: str, value: NDArray[Any]) -> None:
    if value.ndim < 2:  # noqa: PLR2004
        stored[name] = np.ascontiguousarray(value, dtype=np.float32)
        return
    scale = np.abs(value).max(axis=1, keepdims=True).astype(np.float32) / 127
    scale[scale == 0] = 1
    stored[name] = np.rint(value / scale).astype(np.int8)
    stored[name + _SCALE] = scale


def unpack(content: bytes, base: Arrays | None = None) -> Arrays:
    """Returns the weights of a file in 32 bits.

    Args:
        content: Content of a file that `pack` gave.
        base: Weights that those of the file replace or, where it has differences, add to.

    Raises:
        DamagedModelError: If the content is not that of such a file.
    """
    try:
        stored = load(content)
    except (SafetensorError, ValueError) as error:
        raise DamagedModelError(f"no weights can be read: {error}") from None
    plain = {
        name: value * stored[name + _SCALE] if name + _SCALE in stored else value
        for name, value in stored.items()
        if not name.endswith(_SCALE)
    }
    weights = dict(base or {})
    for name, value in plain.items():
        if name.endswith(_LEFT):
            stem = name.removesuffix(_LEFT)
            weights[stem] = (base or {})[stem] + value @ plain[stem + _RIGHT]
        elif not name.endswith(_RIGHT):
            weights[name] = value
    return weights
