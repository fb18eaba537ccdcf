"""Reads shipped weights (8 bits per number, checksums in `config.json`), and refuses unsafe ones.

From other models, only safetensors and JSON are loaded, never pickles or code.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from leporello.core.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALE = ".scale"
LEFT, RIGHT = ".left", ".right"

Arrays: TypeAlias = "dict[str, NDArray[Any]]"


@dataclass(frozen=True)
class ModelFolder:
    """A folder with a shipped reader; `config.json` lists all other files with their SHA-256."""

    path: Path

    def config(self) -> dict[str, Any]:
        """Returns the content of `config.json`."""
        try:
            config = json.loads(self._bytes("config.json"))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{self.path / 'config.json'} is not JSON: {error}") from None
        if not isinstance(config, dict) or not isinstance(config.get("sha256", {}), dict):
            raise UserError(f"{self.path / 'config.json'} is damaged; install the package again")
        return config

    def checked(self, name: str) -> bytes:
        """Returns the bytes of a file that `config.json` lists."""
        checksum = self.config().get("sha256", {}).get(name)
        content = self._bytes(name)
        if checksum is None:
            raise UserError(f"{self.path / name} is not listed in config.json")
        # A damaged weight would not fail; it would answer worse.
        if hashlib.sha256(content).hexdigest() != checksum:
            raise UserError(
                f"{self.path / name} is damaged: its SHA-256 is not the one in config.json; "
                "install the package again"
            )
        return content

    def _bytes(self, name: str) -> bytes:
        try:
            return (self.path / name).read_bytes()
        except OSError as error:
            raise UserError(f"{self.path / name} cannot be read: {error.strerror}") from None


def unpack(content: bytes, base: Arrays | None = None, int8: str | None = None) -> Arrays:
    """Returns the weights of a safetensors file in 32 bits; raises UserError for other content.

    The weights replace those of `base`, or are differences that are added to it. Matrices whose
    names begin with `int8` stay in 8 bits, and the scale of each row is in `NAME.scale`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        stored = load(content)
    except (SafetensorError, ValueError) as error:
        raise UserError(f"the weights cannot be read: {error}") from None
    # 8 bits with a scale for each row: 33 million weights in 34 MB (decision 32).
    scales = {
        name.removesuffix(SCALE): stored.pop(name) for name in [*stored] if name.endswith(SCALE)
    }
    plain: Arrays = {}
    for name, value in stored.items():
        if int8 is not None and name.startswith(int8) and name in scales:
            plain |= {name: value, name + SCALE: scales[name].reshape(-1)}
        else:
            plain[name] = value * scales[name] if name in scales else value
    weights = dict(base or {})
    for name, value in plain.items():
        if name.endswith(LEFT):
            stem = name.removesuffix(LEFT)
            # Low-rank differences, so a second set of heads ships no second encoder (decision 32).
            weights[stem] = (base or {})[stem] + value @ plain[stem + RIGHT]
        elif not name.endswith(RIGHT):
            weights[name] = value
    return weights


def refuse_pickles(model: str, folders: Iterable[Path], convert: str) -> None:
    """Raises UserError if the only weights of a model are a pickle, which can run any code.

    `folders` may contain weights. `convert` is a line of Python that saves them as safetensors.
    """
    for folder in folders:
        pickles = sorted(folder.glob("pytorch_model*.bin"))
        if pickles and not any(folder.glob("*.safetensors")):
            raise UserError(
                f"model {model!r} has weights as a pickle only ({pickles[0]}), and a pickle can"
                " run any code. If you trust its source, convert it once and use the new folder:\n"
                f'  python -c "{convert}"'
            )


def refused_code(model: str, error: Exception) -> UserError | None:
    """Returns the error for a model that libraries reject because of its own code, or None."""
    if "trust_remote_code" not in str(error):
        return None
    return UserError(
        f"model {model!r} needs its own Python code, which is never run; choose a model whose"
        " architecture the installed libraries support"
    )


def disable_pickle_conversion() -> None:
    """Disables a service that converts pickles, to which transformers would send the hub token."""
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
