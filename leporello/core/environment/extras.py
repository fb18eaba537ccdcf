"""The packages that extras of the installation bring, asked for before they are imported."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec

from leporello.core.errors import UserError

# The extra of pyproject.toml that brings a package, by the name under which it is imported, where
# that is another one.
_EXTRA_OF: Mapping[str, str] = {
    "faiss": "local",
    "jieba": "chinese",
    "langchain_core": "langchain",
    "langchain_text_splitters": "langchain",
    "llguidance": "typed",
    "lm_eval": "lm-eval",
    "onnx": "local",
    "peft": "train",
    "pyarrow": "parquet",
    "pycocoevalcap": "muld",
    "rapidocr": "ocr",
    "sentence_transformers": "local",
    "tensorboard": "train",
    "torch": "local",
    "transformers": "local",
    "unidecode": "zero-scrolls",
    "wonderwords": "ruler",
}


def require(who: str, *packages: str) -> None:
    """Looks for packages, without importing them.

    Args:
        who: The words with which the message begins: what needs them.
        packages: Names under which they are imported.

    Raises:
        UserError: One is not installed; the message names the extra that brings it.
    """
    for package in packages:
        if not is_installed(package):
            raise UserError(
                f"{who} needs the package {package}, which is not installed here:"
                f" {install_command(_EXTRA_OF.get(package, package))}"
            )


def is_installed(package: str) -> bool:
    """Says whether a package can be imported."""
    if package in sys.modules:  # a module without a spec makes find_spec raise
        return sys.modules[package] is not None
    return find_spec(package) is not None


def install_command(extra: str) -> str:
    """Returns the command that installs an extra."""
    return f"pip install 'leporello[{extra}]'"
