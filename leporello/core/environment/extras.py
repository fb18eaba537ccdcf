"""Checks that optional packages are installed, and names the extra that installs them."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec

from leporello.core.errors import UserError

# Extra of pyproject.toml by the import name of a package, if the two names differ.
_EXTRA_OF: Mapping[str, str] = {
    "faiss": "local",
    "jieba": "chinese",
    "langchain_core": "langchain",
    "langchain_text_splitters": "langchain",
    "llguidance": "typed",
    "lm_eval": "lm-eval",
    "nltk": "shuffle-test",
    "onnx": "train",
    "peft": "train",
    "punkt": "shuffle-test",
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


def require(feature: str, *packages: str) -> None:
    """Raises UserError with the extra to install, unless packages are installed (import names)."""
    for package in packages:
        if not is_installed(package):
            raise UserError(
                f"{feature} needs the package {package}, which is not installed here:"
                f" {install_command(_EXTRA_OF.get(package, package))}"
            )


def is_installed(package: str) -> bool:
    """Returns whether a package can be imported."""
    if package in sys.modules:  # find_spec raises an error for a loaded module without a spec
        return sys.modules[package] is not None
    return find_spec(package) is not None


def install_command(extra: str) -> str:
    """Returns the command that installs an extra."""
    return f"pip install 'leporello[{extra}]'"
