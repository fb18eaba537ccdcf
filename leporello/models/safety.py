"""Safety checks of models: only safetensors and JSON are loaded, never pickles or code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from leporello.core.errors import UserError


def refuse_pickles(model: str, folders: Iterable[Path], convert: str) -> None:
    """Rejects a model whose only weights are a pickle, since unpickling can run any code.

    Args:
        model: Name of the model in the config.
        folders: Folders that may contain weights.
        convert: Line of Python that saves the model as safetensors.

    Raises:
        UserError: A folder contains a pickle but no safetensors.
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
