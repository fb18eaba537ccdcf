"""The versions of the libraries that results depend on. Nothing is imported to find them out."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from functools import cache
from importlib import metadata

from leporello.cache.source_code import is_own, sources

# What Leporello's own modules import and no result depends on. Whatever else they import counts,
# so that a new backend's library does; and every package that a plug-in imports.
_HARMLESS = frozenset(
    {
        "aiohttp", "annotated_types", "filelock", "fsspec", "httpx2", "huggingface_hub",
        "platformdirs", "pydantic", "pydantic_core", "safetensors", "skops",
        "zstandard",
    }
)  # fmt: skip
# What modules that every stage shares import for models: it counts only where a stage names one.
_FOR_MODELS = frozenset({"sentence_transformers", "tokenizers", "torch", "transformers"})
# Distributions by package, where they have another name or others beneath them matter.
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "faiss": ("faiss-cpu",),
    "sentence_transformers": ("sentence-transformers", "transformers", "tokenizers", "torch"),
    "sklearn": ("scikit-learn", "scipy"),
    "transformers": ("transformers", "tokenizers"),
}


@cache
def library_versions(cls: type, *, has_model: bool) -> Mapping[str, str | None]:
    """Returns the versions of the distributions that a class's results depend on.

    Args:
        cls: The class.
        has_model: Whether one of its parameters names a model.

    Returns:
        Versions by distribution, sorted; None of what is not installed.
    """
    distributions: set[str] = set()
    for module, packages in sources(cls).libraries.items():
        for package in packages:
            if not is_own(module) or _counts(package, has_model=has_model):
                distributions.update(_distributions(package))
    return {name: _version(name) for name in sorted(distributions)}


def _counts(package: str, *, has_model: bool) -> bool:
    return package not in _HARMLESS and (has_model or package not in _FOR_MODELS)


def _distributions(package: str) -> tuple[str, ...]:
    """Returns the distributions that a package comes from, and those that matter beneath it."""
    expected = _DISTRIBUTIONS.get(package, (package.replace("_", "-"),))
    if all(map(_version, expected)) or importlib.util.find_spec(package) is None:
        return expected
    return tuple(_all_distributions().get(package, expected))


@cache
def _all_distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()  # 0.8 s: it reads which files each one has


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
