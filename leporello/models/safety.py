"""What is loaded from a model's folder: safetensors and JSON, never pickles, never its code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from leporello.core.errors import UserError


def refuse_pickles(model: str, folders: Iterable[Path], convert: str) -> None:
    """Refuses a model that has weights as a pickle only: unpickling runs what is in it.

    Args:
        model: The model as the config names it.
        folders: Folders that weights are looked for in.
        convert: A line of Python that saves the model as safetensors.

    Raises:
        UserError: Such a file has no safetensors beside it.
    """
    for folder in folders:
        pickles = sorted(folder.glob("pytorch_model*.bin"))
        if pickles and not any(folder.glob("*.safetensors")):
            raise UserError(
                f"model {model!r} has weights as a pickle only ({pickles[0]}), and a pickle can"
                " run any code. If you trust where it comes from, convert it once, and name the"
                f' new folder:\n  python -c "{convert}"'
            )


def refused_code(model: str, error: Exception) -> UserError | None:
    """Returns what to tell of a model that the libraries refuse since it brings code, if it is."""
    if "trust_remote_code" not in str(error):
        return None
    return UserError(
        f"model {model!r} brings Python code of its own, which is not run; choose a model whose"
        " architecture the installed libraries know"
    )


def keep_token_here() -> None:
    """Keeps transformers from having a service convert pickles, to which it sends the hub token."""
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
