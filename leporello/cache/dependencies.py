"""Dependencies of results besides parameters: for cache keys, a run's signature and `plan` alike.

A file that neither a parameter nor `depends_on` names is not among them, nor is a server.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

from leporello.cache.source_code import is_own, public_name, source_hash, sources
from leporello.core.annotations import (
    BACKEND_MARK,
    MODEL_MARK,
    annotations_of,
    declared_files,
    declared_variables,
    has_declared,
    is_repeatable,
    marked,
)
from leporello.core.environment.classes import find_class
from leporello.core.errors import UserError
from leporello.core.protocols import BACKEND
from leporello.core.records import JSON
from leporello.models.locate import content_fingerprint, model_fingerprint

# What Leporello's own modules import and no result depends on. Whatever else they import counts,
# so that a new backend's library does; and every package that a plug-in imports.
_HARMLESS = frozenset(
    {
        "aiohttp", "annotated_types", "filelock", "fsspec", "httpx2", "huggingface_hub",
        "lazy_loader", "platformdirs", "pydantic", "pydantic_core", "safetensors", "skops", "yaml",
        "zstandard",
    }
)  # fmt: skip
# What modules that every stage shares import for models: it counts only where a stage names one.
_FOR_MODELS = frozenset({"sentence_transformers", "tokenizers", "torch", "transformers"})
# Distributions by package, where they have another name or others beneath them matter.
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "faiss": ("faiss-cpu",),
    "pptx": ("python-pptx",),
    "sentence_transformers": ("sentence-transformers", "transformers", "tokenizers", "torch"),
    "sklearn": ("scikit-learn", "scipy"),
    "transformers": ("transformers", "tokenizers"),
}

UNDECLARED = "undeclared"  # key of a recipe: names of such classes


@dataclass(frozen=True, slots=True)
class Dependencies:
    """What the results of an object depend on besides its parameters and nested stages.

    Attributes:
        source: Hash of its class's file and of every local module that this imports.
        models: Name and content, or revision, of each model, by parameter: `model`, `models.0`.
            A model's content is that of all its files, those of its tokenizer among them.
        files: Content of the files and folders that parameters name as paths, by place.
        libraries: Versions of the distributions that matter; None of what is not installed.
        declared: Content of the files and variables that `depends_on` names, by its entries.
        undeclared: Names of plug-in classes without `depends_on`.
    """

    source: str
    models: Mapping[str, tuple[str, str]]
    files: Mapping[str, str]
    libraries: Mapping[str, str | None]
    declared: Mapping[str, str] = field(default_factory=dict)
    undeclared: Sequence[str] = ()

    def key(self) -> dict[str, JSON]:
        """Returns what stands in a cache key: also what this machine computes otherwise."""
        values: dict[str, JSON] = {
            "sources": self.source,
            "models": {parameter: content for parameter, (_, content) in self.models.items()},
            "libraries": {**self.libraries},
            "python": _python(),
        }
        if self.models:  # what a model computes differs in its last digits from machine to machine
            values["machine"] = _machine()
        optional: dict[str, JSON] = {
            "files": {**self.files}, "depends_on": {**self.declared}, UNDECLARED: [*self.undeclared]
        }  # fmt: skip
        return values | {name: value for name, value in optional.items() if value}


def signature_of(classes: Iterable[tuple[str, Dependencies]]) -> dict[str, JSON]:
    """Returns what a run's signature has of what its results depend on.

    It has what cache keys have, so that a run refuses to go on where the cache would miss; but for
    the machine: on a cluster each worker has its own, and what goes on with a run yet another. A
    library's build is the machine's too: torch 2.13+cpu and 2.13+cu130 are one version here.

    Args:
        classes: Names, as the config has them, and what these depend on; a class may come twice.
    """
    found = [*classes]
    each = [one for _, one in found]
    files = {place: content for one in each for place, content in one.files.items()}
    declared: dict[str, JSON] = {name: {**one.declared} for name, one in found if one.declared}
    libraries = {n: v and v.partition("+")[0] for one in each for n, v in one.libraries.items()}
    return {
        "sources": {name: one.source for name, one in found},
        "models": {model: told for one in each for model, told in one.models.values()},
        "libraries": dict(sorted(libraries.items())),
        "python": _python(),
        **({"files": {**files}} if files else {}),
        **({"depends_on": declared} if declared else {}),
    }


def dependencies(
    cls: type,
    given: Mapping[str, object],
    content: Callable[[str], str] = model_fingerprint,
) -> Dependencies:
    """Returns what an object depends on besides its parameters.

    Args:
        cls: Its class.
        given: Its parameters.
        content: Function that returns the content or revision of a model.

    Raises:
        UserError: A model, or a file that `depends_on` names, is missing.
    """
    models = {
        name: (model, _told(cls, name, model, content)) for name, model in _models(cls, given)
    }
    libraries = library_versions(cls, has_model=bool(models))
    classes = [cls, *own_backends(cls, given)]
    for backend in classes[1:]:
        libraries = {**libraries, **library_versions(backend, has_model=True)}
    return Dependencies(
        " ".join(map(source_hash, classes)),
        models,
        files_of(given.values()),
        libraries,
        _declared(classes),
        undeclared(classes),
    )


def _declared(classes: Iterable[type]) -> dict[str, str]:
    """Returns the content of what `depends_on` names; several files of one entry are joined."""
    content: dict[str, str] = {}
    for cls in classes:
        for entry, path in declared_files(cls):
            before = f"{content[entry]} " if entry in content else ""
            content[entry] = before + content_fingerprint(path.resolve())
        for name in declared_variables(cls):
            value = os.environ.get(name, "").encode("utf-8", "surrogateescape")
            is_set = name in os.environ
            content[f"env:{name}"] = hashlib.sha256(value).hexdigest() if is_set else "not set"
    return content


def own_backends(cls: type, given: Mapping[str, object]) -> Iterator[type]:
    """Yields the backends that are no modules of ours, which the class's own source names."""
    annotations = annotations_of(cls)
    for name, value in given.items():
        if isinstance(value, str) and marked(annotations.get(name), BACKEND_MARK):
            backend = find_class(value, BACKEND, Path())
            if not is_own(backend.__module__):
                yield backend


def files_of(values: Iterable[object]) -> dict[str, str]:
    """Returns the content of the files and folders that parameters name as paths, by place.

    What they hold matters, not only where they are. Text is no path.
    """
    return {
        str(path): content_fingerprint(Path(os.fspath(path)).resolve()) for path in _paths(values)
    }


def _paths(values: Iterable[object]) -> Iterator[Path]:
    for value in values:
        if isinstance(value, Path) and value.exists():
            yield value
        elif isinstance(value, Mapping):
            yield from _paths(value.values())
        elif isinstance(value, (tuple, list, set, frozenset)):
            yield from _paths(value)


def _models(cls: type, given: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yields the models that parameters name; `words` is a tokenizer without one."""
    annotations = annotations_of(cls)
    for name, value in given.items():
        if not marked(annotations.get(name), MODEL_MARK):
            continue
        several = isinstance(value, (tuple, list))
        for place, model in enumerate(value if isinstance(value, (tuple, list)) else (value,)):
            if isinstance(model, str) and model != "words":
                yield f"{name}.{place}" if several else name, model


def _told(cls: type, parameter: str, model: str, content: Callable[[str], str]) -> str:
    try:
        return content(model)
    except UserError as error:
        raise UserError(f"{cls.__name__}.{parameter}: {error}") from None


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _machine() -> str:
    """Returns what models run on, as far as it changes what they compute; torch is not loaded."""
    driver = Path("/proc/driver/nvidia/version")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1")
    return platform.machine() if hidden or not driver.exists() else f"{platform.machine()} nvidia"


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


@cache
def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def undeclared(classes: Iterable[type]) -> list[str]:
    """Returns the names of the plug-in classes among these that declare nothing."""
    return [
        public_name(cls) or cls.__qualname__
        for cls in classes
        if not (is_own(cls.__module__) or has_declared(cls)) and is_repeatable(cls)
    ]
