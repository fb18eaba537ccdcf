"""Loads a checked config from files and `--set` texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any

from leporello.config.builder import ConfigBuilder
from leporello.config.config import Config
from leporello.config.layers import Layers, Override, parse_override
from leporello.config.space import Space
from leporello.config.specs import PipelineSpec, Place, TaskSpec
from leporello.config.sweeps import is_choice, spec_of
from leporello.core.calls.contracts import check_files as check_stage_files
from leporello.core.errors import ConfigError, Fault, UserError, build_all, check_list, no_such
from leporello.core.protocols import LOADER, Loader
from leporello.core.secrets import is_set
from leporello.core.yaml.tree import ConfigSource
from leporello.models.locate import locate


def load_config(
    files: Sequence[ConfigSource] = (),
    overrides: Sequence[str] = (),
    names: Sequence[str] = (),
    placement: Mapping[str, Any] | None = None,
) -> Config:
    """Reads the user's files, which override built-in ones.

    The user's declarations and the pipelines in `names` are checked at once, all others on first
    access. A built-in file is opened only when a name in it is used.

    Args:
        files: Files of the user, or mappings of the same form; later ones override earlier ones.
        overrides: `--set` texts, applied to the pipelines in `names`.
        names: Pipelines to which `overrides` apply; empty means the default pipeline.
        placement: Values that replace those in the `placement` of every pipeline; None keeps a
            value.

    Raises:
        UserError: A file cannot be read; `ConfigError` contains all faults of the files.
    """
    check_list("files", files)
    return _load(files, build_all(overrides, parse_override), names, placement=placement)[0]


def load_space(
    files: Sequence[ConfigSource], overrides: Sequence[str] = (), name: str = ""
) -> tuple[Config, Space, PipelineSpec]:
    """Reads a config for `tune`, where the sweeps and ranges of one pipeline are choices.

    Returns the config, the pipeline with all choices, and the first point of its own choices.
    """
    chosen = build_all(overrides, parse_override)
    single = [override for override in chosen if not is_choice(override.value)]
    (loaded, opened), (fixed, _) = (
        _load(files, settings, [name] * bool(name), True) for settings in (chosen, single)
    )
    name = name or loaded.default_pipeline
    if name not in opened:
        raise UserError(no_such("pipeline", name, loaded.pipelines))
    return loaded, opened[name], fixed.pipelines[name][0]


def _load(
    files: Sequence[ConfigSource],
    overrides: Sequence[Override],
    names: Sequence[str],
    opened: bool = False,
    placement: Mapping[str, Any] | None = None,
) -> tuple[Config, Mapping[str, Space]]:
    try:
        builder = ConfigBuilder(Layers(files), overrides, names, opened, placement)
        return builder.load(), builder.spaces
    except RecursionError:
        raise UserError("the config is nested too deeply") from None


def valid_tasks(files: Sequence[ConfigSource]) -> list[TaskSpec]:
    """Returns the tasks of the user's files that have no faults."""
    builder = ConfigBuilder(Layers(files), (), ())
    with suppress(ConfigError):
        builder.tasks.of(builder.layers.tasks.own)
    return [*builder.tasks.ready.values()]


def loader_of(text: str) -> Loader:
    """Returns the loader of a text: `Text`, or `{class: Text, encoding: cp1252}`."""
    loader: Loader = spec_of(text, LOADER, "--loader").build()
    return loader


def check_files(pipelines: Iterable[PipelineSpec], data: Iterable[str] = repeat("")) -> None:
    """Checks the files that the stages of pipelines use, which `load_config` does not open.

    Pipelines are skipped if an environment variable with one of their keys is not set. `data` are
    the fingerprints of their tasks' data. All faults are raised together, those of a sweep once.
    """
    faults: list[Fault] = []
    for pipeline, fingerprint in zip(pipelines, data, strict=False):
        if not all(map(is_set, pipeline.variables())):
            continue
        name = pipeline.name.partition("@")[0]
        for key, spec in pipeline.stages.items():
            check_stage = partial(check_stage_files, spec.build(), fingerprint)
            checks: list[tuple[Place, Callable[[], object]]] = [
                *((place, partial(locate, model)) for model, place in spec.model_paths()),
                (spec.places.get("class", (None, 0)), check_stage),
            ]
            for place, check in checks:
                try:
                    check()
                except UserError as error:
                    lines = str(error).splitlines()
                    faults += [Fault(*place, f"{name}.{key}: {line}") for line in lines]
    if faults:
        raise ConfigError(faults)
