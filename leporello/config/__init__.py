"""pipelines.yaml -> checked specs; every fault at once, with file and line, before any work.

It may read the files that it is given and import the classes that they name; it loads no model and
touches no task's data. Begin with `load_config` below, then `layers` (several files as one),
`sweeps` (trees become specs) and `specs` (what comes out).
"""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from leporello.config.built_in import built_in_path
from leporello.config.layers import Layers, Override, apply, parse_override
from leporello.config.metrics import entry_of, metric_specs
from leporello.config.named_model import check_combiner, with_model
from leporello.config.parameters import parameters, validate
from leporello.config.placement_settings import PlacementSpec, check_placement, placement_flags
from leporello.config.space import Space, first, is_choice, space_of
from leporello.config.specs import ROLES, Pipeline, PipelineSpec, Spec, TaskSpec
from leporello.config.suites import Suite, check_names, suites_of
from leporello.config.sweeps import Labels, SweepPoints, spec_of
from leporello.config.training_settings import TrainingSpec, check_training
from leporello.core.calls.budget import Budget
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.protocols import ANSWER, KINDS, LOADER, TASK, Loader
from leporello.core.training import Training
from leporello.core.yaml.tree import ConfigSource, Tree, check_settings, read_tree

__all__ = [
    "Config",
    "ConfigSource",
    "Pipeline",
    "PipelineSpec",
    "PlacementSpec",
    "Spec",
    "TaskSpec",
    "Training",
    "TrainingSpec",
    "built_in_path",
    "load_config",
    "load_space",
    "loader_of",
    "placement_flags",
]


_DEFAULTS = ("pipeline", "task", "pipelines")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be run.

    Attributes:
        pipelines: Pipelines by name; each a list of points, one where nothing is swept.
        tasks: Tasks by name.
        default_pipeline: Name of the pipeline that `run` takes when none is named.
        default_task: Name of the task that a pipeline without tasks of its own runs on.
        default_pipelines: Name of the pipeline that `run` takes instead, by task.
        collections: Paths, patterns and URLs of collections by name.
        suites: Suites by name.
    """

    pipelines: Mapping[str, Sequence[PipelineSpec]]
    tasks: Mapping[str, TaskSpec]
    default_pipeline: str
    default_task: str
    default_pipelines: Mapping[str, str] = field(default_factory=dict)
    collections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suites: Mapping[str, Suite] = field(default_factory=dict)

    def jobs(
        self, pipelines: Sequence[str], tasks: Sequence[str]
    ) -> list[tuple[PipelineSpec, TaskSpec]]:
        """Returns what to run on what: named pipelines on each task, or the task's default one.

        Args:
            pipelines: Names as `select` takes them.
            tasks: Names as `select_tasks` takes them.

        Raises:
            UserError: As these two.
        """
        if pipelines or not tasks:
            chosen = self.select(pipelines)
            return [(point, task) for point in chosen for task in self.select_tasks(point, tasks)]
        return [
            (point, task)
            for task in self.tasks_named(tasks)
            for point in self.select([self.default_pipelines.get(task.name, self.default_pipeline)])
        ]

    def select(self, names: Sequence[str]) -> list[PipelineSpec]:
        """Returns the points of these pipelines: names, names of points, or `*` patterns.

        Raises:
            UserError: A name that is neither, or a pattern that nothing matches.
        """
        points = {p.name: p for group in self.pipelines.values() for p in group}
        chosen: dict[str, PipelineSpec] = {}
        unknown = []
        for name in names or [self.default_pipeline]:
            group = self.pipelines.get(name) or [
                points[match]
                for match in points
                if match == name or (name not in points and fnmatch.fnmatchcase(match, name))
            ]
            if not group:
                hint = did_you_mean(name, {*self.pipelines, *points})
                unknown.append(f"there is no pipeline {name!r}{hint}")
            chosen.update((point.name, point) for point in group)
        if unknown:
            raise UserError("\n".join(unknown))
        return list(chosen.values())

    def select_tasks(self, pipeline: PipelineSpec, names: Sequence[str]) -> list[TaskSpec]:
        """Returns the named tasks, else the pipeline's own, else the default one.

        Raises:
            UserError: As `tasks_named`.
        """
        return self.tasks_named(list(names) or list(pipeline.tasks) or [self.default_task])

    def tasks_named(self, names: Sequence[str]) -> list[TaskSpec]:
        """Returns the tasks of these names, or that these `*` patterns fit.

        `NAME@length=8192` is the task with another value of a parameter, under that name.

        Raises:
            UserError: There is no such task, or it takes no such value.
        """
        fitting = {
            name: {task: self.tasks[task] for task in fnmatch.filter(self.tasks, name)}
            or self._adjusted(name)
            for name in names
        }
        if unknown := [name for name, tasks in fitting.items() if not tasks]:
            hints = (did_you_mean(name, self.tasks) for name in unknown)
            lines = map("there is no task {!r}{}".format, unknown, hints)
            raise UserError("\n".join(lines))
        return [
            *{name: task for tasks in fitting.values() for name, task in tasks.items()}.values()
        ]

    def _adjusted(self, name: str) -> dict[str, TaskSpec]:
        """Returns the tasks of `PATTERN@PARAMETER=VALUE`, with this value; none of other names."""
        pattern, _, settings = name.partition("@")
        found = fnmatch.filter(self.tasks, pattern) if settings else []
        tasks = (self.tasks[each].adjusted(settings) for each in found)
        return {task.name: task for task in tasks}


def load_config(
    files: Sequence[ConfigSource] = (), overrides: Sequence[str] = (), names: Sequence[str] = ()
) -> Config:
    """Reads the built-in file and the user's over it, and checks all of it.

    Args:
        files: Files of the user, laid over the built-in one in order; mappings of the same form.
        overrides: `--set` texts, applied to the pipelines in `names`.
        names: Pipelines that `overrides` are for; empty means the default pipeline.

    Raises:
        UserError: A file that cannot be read.
        ConfigError: Everything that is wrong with the files, at once.
    """
    return _load(files, _parse_overrides(overrides), names)[0]


def load_space(
    files: Sequence[ConfigSource],
    overrides: Sequence[str] = (),
    name: str = "",
    space: Path | None = None,
) -> tuple[Config, Space, Space]:
    """Reads a config for `tune`, where the sweeps and ranges of one pipeline are choices.

    Args:
        files: Files as `load_config` takes them.
        overrides: `--set` texts, for this pipeline.
        name: Name of the pipeline; the default one if empty.
        space: File with more choices, by path.

    Returns:
        The config; the pipeline with its choices; and without those of the last two arguments.

    Raises:
        UserError: As `load_config`.
        ConfigError: As `load_config`.
    """
    parsed = _parse_overrides(overrides)
    chosen = [*parsed, *(space_of(space) if space else ())]
    kept = [override for override in parsed if not is_choice(override.value)]
    (loaded, opened), (_, shipped) = (
        _load(files, each, [name] * bool(name), True) for each in (chosen, kept)
    )
    name = name or loaded.default_pipeline
    if name not in opened:
        raise UserError(f"there is no pipeline {name!r}{did_you_mean(name, loaded.pipelines)}")
    return loaded, opened[name], shipped[name]


def _load(
    files: Sequence[ConfigSource],
    overrides: Sequence[Override],
    names: Sequence[str],
    opened: bool = False,
) -> tuple[Config, Mapping[str, Space]]:
    layers = Layers()
    sources = [built_in_path(), *files]
    for file in {s if isinstance(s, Path) else id(s): s for s in sources}.values():
        layers.add(read_tree(file))
    builder = _ConfigBuilder(layers, overrides, names, opened)
    try:
        return builder.load(), builder.spaces
    except RecursionError:
        raise UserError("the config is nested too deeply") from None


def loader_of(text: str) -> Loader:
    """Returns the loader that a text names: `Text`, or `{class: Text, encoding: cp1252}`.

    Raises:
        ConfigError: What is wrong with it.
    """
    loader: Loader = spec_of(text, LOADER, "--loader").build()
    return loader


def _parse_overrides(texts: Sequence[str]) -> list[Override]:
    parsed: list[Override] = []
    faults: list[Fault] = []
    for text in texts:
        try:
            parsed.append(parse_override(text))
        except ConfigError as error:
            faults += error.faults
    if faults:
        raise ConfigError(faults)
    return parsed


class _ConfigBuilder:
    def __init__(
        self,
        layers: Layers,
        overrides: Sequence[Override],
        names: Sequence[str],
        opened: bool = False,
    ) -> None:
        self.layers, self.overrides = layers, overrides
        self.faults: list[Fault] = []
        self.opened, self.spaces = opened, dict[str, Space]()
        self.names = list(names) or [self._default("pipeline")]

    def load(self) -> Config:
        tasks = {name: self._task(name, tree) for name, tree in self.layers.tasks.items()}
        pipelines = {name: self._pipeline(name, set(tasks)) for name in self.layers.pipelines}
        pipeline = self._check_default("pipeline", pipelines)
        task = self._check_default("task", tasks)
        by_task = self._by_task(tasks, pipelines)
        self._check_names(pipelines)
        suites, faults = suites_of(self.layers)
        self.faults += [*faults, *check_names(suites, pipelines, tasks)]
        if faults := [*self.layers.faults, *self.faults]:
            raise ConfigError(faults)
        valid = {name: task for name, task in tasks.items() if task}
        collections = self.layers.collections
        return Config(pipelines, valid, pipeline, task, by_task, collections, suites)

    def _check_names(self, pipelines: Mapping[str, Sequence[PipelineSpec]]) -> None:
        """Two points of one name would be one directory."""
        owner: dict[str, str] = {}
        for name, points in pipelines.items():
            for point in points:
                if point.name in owner:
                    text = f"{name}: two pipelines are named {point.name!r}"
                    self.faults.append(self.layers.pipelines[name].fault(text))
                owner[point.name] = name

    def _default(self, key: str) -> str:
        entry = self.layers.default.items.get(key) if self.layers.default else None
        return str(entry.plain()) if entry else ""

    def _check_default(self, key: str, names: Iterable[str]) -> str:
        name = self._default(key)
        tree = self.layers.default
        entries = tree.items if tree else {}
        for extra in set(entries) - {*_DEFAULTS}:
            hint = did_you_mean(extra, _DEFAULTS)
            self.faults.append(entries[extra].fault(f"default: unknown key {extra!r}{hint}"))
        if tree and key not in entries:
            self.faults.append(tree.fault(f"default: needs a {key}"))
        elif tree and name not in names:
            hint = did_you_mean(name, names)
            self.faults.append(tree.fault(f"default.{key}: there is no {key} {name!r}{hint}"))
        return name

    def _by_task(self, tasks: Iterable[str], pipelines: Iterable[str]) -> dict[str, str]:
        """Returns the default pipelines of tasks that have their own."""
        tree = self.layers.default.items.get("pipelines") if self.layers.default else None
        named = {task: str(entry.plain()) for task, entry in (tree.items if tree else {}).items()}
        for task, pipeline in named.items():
            for key, name, known in (("task", task, tasks), ("pipeline", pipeline, pipelines)):
                if tree and name not in known:
                    hint = did_you_mean(name, known)
                    text = f"default.pipelines.{task}: there is no {key} {name!r}{hint}"
                    self.faults.append(tree.items[task].fault(text))
        return named

    def _task(self, name: str, tree: Tree) -> TaskSpec | None:
        variants = SweepPoints(f"tasks.{name}")
        own = {key: child for key, child in tree.items.items() if key != "metrics"}
        if tree.file and tree.file.name == "run.yaml":  # of 0.2: its answers are as they are
            own.pop("normalised", None)
        options = variants.of_class(tree.with_value(own), TASK, "")
        listed = metric_specs(variants, tree.items["metrics"]) if "metrics" in tree.items else []
        self.faults.extend(variants.faults)
        if len(options) > 1:
            self.faults.append(tree.fault(f"tasks.{name}: a task cannot be swept"))
        if not options:
            return None
        spec, known = options[0][1], self.layers.collections
        if known and "collections" in parameters(spec.cls) and "collections" not in spec.params:
            spec = dataclasses.replace(spec, params={**spec.params, "collections": known})
        return TaskSpec(name, spec).with_metrics([*map(entry_of, listed)])

    def _pipeline(self, name: str, tasks: set[str]) -> list[PipelineSpec]:
        keys = self.layers.resolve(name)
        if keys is None:
            return []
        selected = any(_selects(pattern, name) for pattern in self.names)
        keys = self._changed(name, keys, self.overrides if selected else ())
        if not (selected and self.opened):
            return self._specs(name, keys, tasks, ranges=not selected and name not in self._runs)
        space = self.spaces[name] = Space(name, keys, partial(self._made, name, tasks))
        reduced, faults = space.reduced(first)
        self.faults += faults
        return self._specs(name, reduced, tasks) if not faults else []

    def _made(
        self, name: str, tasks: set[str], keys: Mapping[str, Tree]
    ) -> tuple[list[PipelineSpec], Sequence[Fault]]:
        """Returns a pipeline of other keys, and what is wrong with it."""
        self.faults = []
        return self._specs(name, keys, tasks), self.faults

    def _specs(
        self, name: str, keys: Mapping[str, Tree], tasks: set[str], *, ranges: bool = False
    ) -> list[PipelineSpec]:
        own_tasks = self._strings(name, "tasks", keys.get("tasks"))
        for task in own_tasks:
            if task not in tasks:
                hint = did_you_mean(task, tasks)
                text = f"{name}.tasks: there is no task {task!r}{hint}"
                self.faults.append(keys["tasks"].fault(text))
        normalised = self._switch(name, "normalised", keys.get("normalised"))
        description = " ".join(self._strings(name, "description", keys.get("description")))
        training = self._training(name, keys.get("train"))
        budget = self._budget(name, keys.get("budget"))
        abstain = self._share(name, "abstain", keys.get("abstain"))
        placement = self._placement(name, keys.get("placement"))
        tuned = self._tuned(name, keys.get("tuned"))
        return [
            PipelineSpec(
                f"{name}{_suffix(labels)}", stages, own_tasks, normalised, description, training,
                placement, budget, abstain, tuned,
            )
            for labels, stages in self._points(name, keys, ranges)
        ]  # fmt: skip

    @cached_property
    def _runs(self) -> frozenset[str]:
        """The pipelines that some task runs where none is named."""
        tree = self.layers.default.items.get("pipelines") if self.layers.default else None
        return frozenset(str(entry.plain()) for entry in (tree.items if tree else {}).values())

    def _tuned(self, name: str, tree: Tree | None) -> Mapping[str, Any]:
        told: Any = tree.plain() if tree else {}
        if tree and not isinstance(told, dict):
            text = f"{name}.tuned: must be what `tune` wrote, a mapping, got {told!r}"
            self.faults.append(tree.fault(text))
            return {}
        return cast("Mapping[str, Any]", told)

    def _training(self, name: str, tree: Tree | None) -> TrainingSpec:
        if tree is None:
            return TrainingSpec()
        spec, faults = check_training(name, tree)
        self.faults.extend(faults)
        return spec

    def _budget(self, name: str, tree: Tree | None) -> Budget:
        if tree is None:
            return Budget()
        given, faults = check_settings(f"{name}.budget", tree, _limit)
        self.faults.extend(faults)
        return Budget(**given) if not faults else Budget()

    def _placement(self, name: str, tree: Tree | None) -> PlacementSpec:
        if tree is None:
            return PlacementSpec()
        spec, faults = check_placement(name, tree)
        self.faults.extend(faults)
        return spec

    def _changed(
        self, name: str, keys: Mapping[str, Tree], overrides: Sequence[Override]
    ) -> dict[str, Tree]:
        """Returns the keys as `model` and then `--set` have them."""
        names = [override for override in overrides if override.path == ("model",)]
        tree = (names[-1].value if names else keys.get("model")) or self.layers.pipelines[name]
        try:
            changed = with_model(apply(names, keys))
            changed = apply([o for o in overrides if o not in names], changed)
            if names or "model" in keys:
                check_combiner(changed)
        except KeyError as error:
            self.faults.append(Fault(None, 0, f"--set for {name}: {error.args[0]}"))
        except ConfigError as error:
            self.faults += error.faults
        except UserError as error:
            self.faults.append(tree.fault(f"{name}: {error}"))
        else:
            return changed
        return {key: child for key, child in keys.items() if key != "model"}

    def _switch(self, name: str, key: str, tree: Tree | None) -> bool:
        if tree is not None and not isinstance(tree.value, bool):
            fault = f"{name}.{key}: must be true or false, got {tree.plain()!r}"
            self.faults.append(tree.fault(fault))
        return tree is not None and tree.value is True

    def _share(self, name: str, key: str, tree: Tree | None) -> float | None:
        if tree is None:
            return None
        value = tree.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
            return float(value)
        text = f"{name}.{key}: must be one number from 0 to 1, got {tree.plain()!r}"
        self.faults.append(tree.fault(text))
        return None

    def _strings(self, name: str, key: str, tree: Tree | None) -> tuple[str, ...]:
        if tree is None:
            return ()
        items = tree.value if isinstance(tree.value, list) else [tree]
        if not all(isinstance(item.value, str) for item in items):
            self.faults.append(tree.fault(f"{name}.{key}: must be text, or a list of texts"))
            return ()
        return tuple(str(item.value) for item in items)

    def _roles(self, name: str, tree: Tree | None) -> Mapping[str, Tree]:
        """Returns the readers of roles other than that of answers, which is `reader`."""
        if tree is not None and not (tree.items and all(map(str.isidentifier, tree.items))):
            fault = f"{name}.readers: must be a mapping of roles to readers, got {tree.plain()!r}"
            self.faults.append(tree.fault(fault))
            return {}
        roles = {role: child.as_class() for role, child in tree.items.items()} if tree else {}
        if answering := roles.pop(ANSWER, None):  # of a `--set` of all readers
            self.faults.append(answering.fault(f"{name}.readers.{ANSWER}: set `reader` instead"))
        return roles

    def _points(
        self, name: str, keys: Mapping[str, Tree], ranges: bool
    ) -> list[tuple[Labels, dict[str, Spec]]]:
        roles = self._roles(name, keys.get("readers"))
        variants = SweepPoints(name, [ANSWER, *roles] if roles else None, ranges=ranges)
        own = self.layers.pipelines[name]
        options: dict[str, list[tuple[Labels, Spec]]] = {}
        stages_of = {**KINDS, **{f"{ROLES}{role}": KINDS["reader"] for role in roles}}
        for key, kind in stages_of.items():
            tree = keys.get(key) or roles.get(key.removeprefix(ROLES))
            if tree is None and kind.default is None:
                more = f", or `{ANSWER}` among its readers" if roles else ""
                variants.faults.append(own.fault(f"{name}: needs a {key}{more}"))
            elif tree is not None or kind.default:
                tree = tree or _default_stage(own, kind.default)
                options[key] = variants.of_stage(tree, kind, key)
        points = variants.combined(own, "", [*options.values()])
        self.faults.extend(variants.faults)
        return [(labels, dict(zip(options, stages, strict=True))) for labels, stages in points]


def _limit(name: str, tree: Tree) -> tuple[Any, str | None]:
    known = parameters(Budget)
    if name not in known:
        return None, f"a budget has no such limit{did_you_mean(name, known)}"
    return validate(known[name], tree)


def _selects(pattern: str, name: str) -> bool:
    """Says whether a name, a point's name or a pattern means points of this pipeline."""
    return pattern == name or fnmatch.fnmatchcase(name, pattern.partition("@")[0])


def _default_stage(tree: Tree, name: str | None) -> Tree:
    return tree.with_value({"class": tree.with_value(name)})


def _suffix(labels: Labels) -> str:
    return "@" + ",".join(f"{path}={value}" for path, value in labels) if labels else ""
