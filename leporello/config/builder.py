"""Builds checked pipelines, tasks and suites from the trees of files."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Le

from leporello.config.config import Checked, Config, matching
from leporello.config.layers import Layers, Override, apply
from leporello.config.metrics import entry_of, metric_specs
from leporello.config.named_model import check_combiner, with_model
from leporello.config.parameters import Parameter, parameters, setting, settings_of, validate
from leporello.config.placement import check_placement
from leporello.config.space import Pick, Space, first
from leporello.config.specs import ROLES, PipelineSpec, Spec, TaskSpec
from leporello.config.suite_files import check_names, suite_of
from leporello.config.suites import Suite
from leporello.config.sweeps import Labels, SweepPoints
from leporello.config.training_settings import check_training
from leporello.core.calls.budget import Budget
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean, no_such
from leporello.core.protocols import ANSWER, KINDS, TASK
from leporello.core.yaml.tree import Tree

_DEFAULTS = ("pipeline", "task", "pipelines")
_T = TypeVar("_T")


class ConfigBuilder:
    """Turns the trees of files into specs, and collects every fault."""

    def __init__(
        self,
        layers: Layers,
        overrides: Sequence[Override],
        names: Sequence[str],
        opened: bool = False,
        placement: Mapping[str, Any] | None = None,
    ) -> None:
        self.placement = [
            Override(("placement", name), Tree(value, None, 0))
            for name, value in (placement or {}).items()
            if value is not None
        ]
        self.layers, self.overrides = layers, overrides
        self.faults: list[Fault] = []
        self.opened, self.spaces = opened, dict[str, Space]()
        self.is_named = bool(names) or opened
        requested = names or [self._default("pipeline")]
        self.selected = {p for name in requested for p in matching(name, layers.pipelines)}
        self.pipelines = Checked(layers.pipelines, partial(self._valid, self._pipeline))
        self.tasks = Checked(layers.tasks, partial(self._valid, self._task))
        self.suites = Checked(layers.suites, partial(self._valid, self._suite))

    def load(self) -> Config:
        """Checks the user's declarations and the selected pipelines; raises all faults together."""
        layers = self.layers
        names = dict.fromkeys(layers.pipelines.own)
        if self.overrides or self.is_named:
            names |= {p: None for p in layers.pipelines if p in self.selected}
        points, faults = self.pipelines.attempt(names)
        faults += self.tasks.attempt(layers.tasks.own)[1]
        faults += self.suites.attempt(layers.suites.own)[1]
        self._check_default()
        self._check_names(points)
        if faults := [*layers.faults, *faults, *self.faults]:
            raise ConfigError(faults)
        return Config(
            self.pipelines, self.tasks, self.suites, self._default("pipeline"),
            self._default("task"), self._default_pipelines, layers.collections,
        )  # fmt: skip

    def _valid(self, check: Callable[[str], _T], name: str) -> _T:
        value, faults = self._checked(check, name)
        if faults:
            raise ConfigError(faults)
        return value

    def _checked(self, check: Callable[[str], _T], name: str) -> tuple[_T, list[Fault]]:
        """Returns a checked declaration and its faults; a check may check other declarations."""
        outer, self.faults = self.faults, []
        try:
            return check(name), self.faults
        finally:
            self.faults = outer

    def _suite(self, name: str) -> Suite:
        suite, faults = suite_of(self.layers, name)
        if suite is None:
            raise ConfigError(faults)
        self.faults += [*faults, *check_names(suite, self.layers.pipelines, self.tasks)]
        return suite

    def _check_names(self, pipelines: Mapping[str, Sequence[PipelineSpec]]) -> None:
        """Reports points with the same name, which would share a directory."""
        owner: dict[str, str] = {}
        for name, points in pipelines.items():
            for point in points:
                if point.name in owner:
                    text = f"{name}: two pipelines are named {point.name!r}"
                    self.faults.append(self.layers.pipelines[name].fault(text))
                owner[point.name] = name

    def _default(self, key: str) -> str:
        entry = self.layers.default.items.get(key)
        return str(entry.plain()) if entry else ""

    def _check_default(self) -> None:
        tree, references = self.layers.default, list[tuple[str, str, str, Tree]]()
        for key, child in tree.items.items():
            if key not in _DEFAULTS:
                hint = did_you_mean(key, _DEFAULTS)
                self.faults.append(child.fault(f"default: unknown key {key!r}{hint}"))
        for key in ("pipeline", "task"):
            if key in tree.items:
                references.append((f"default.{key}", key, self._default(key), tree))
            else:
                self.faults.append(tree.fault(f"default: needs a {key}"))
        for task, pipeline in self._default_pipelines.items():
            path, child = f"default.pipelines.{task}", tree.items["pipelines"].items[task]
            references += [(path, "task", task, child), (path, "pipeline", pipeline, child)]
        for path, kind, name, place in references:
            names = self.layers.tasks if kind == "task" else self.layers.pipelines
            if name not in names:
                self.faults.append(place.fault(f"{path}: {no_such(kind, name, names)}"))

    def _task(self, name: str) -> TaskSpec:
        tree = self.layers.tasks[name]
        variants = SweepPoints(f"tasks.{name}")
        keys = {key: child for key, child in tree.items.items() if key != "metrics"}
        if tree.file and tree.file.name == "run.yaml":  # of 0.2, which normalised in the task
            keys.pop("normalised", None)
        options = variants.of_class(tree.with_value(keys), TASK)
        listed = metric_specs(variants, tree.items["metrics"]) if "metrics" in tree.items else []
        self.faults.extend(variants.faults)
        if len(options) > 1:
            self.faults.append(tree.fault(f"tasks.{name}: a task cannot be swept"))
        if self.faults:
            raise ConfigError(self.faults)
        spec, paths = options[0][1], self.layers.collections
        if paths and "collections" in parameters(spec.cls) and "collections" not in spec.params:
            spec = dataclasses.replace(spec, params={**spec.params, "collections": paths})
        return TaskSpec(name, spec).with_metrics([*map(entry_of, listed)])

    def _pipeline(self, name: str) -> Sequence[PipelineSpec]:
        replaced: list[Fault] = []
        keys = self.layers.resolve(name, self.faults, replaced)
        points = [] if keys is None else self._points(name, keys)
        if self.faults:
            self.faults += replaced
        return points

    def _points(self, name: str, keys: Mapping[str, Tree]) -> list[PipelineSpec]:
        selected = name in self.selected
        overrides = [*(self.overrides if selected else ()), *self.placement]
        keys = self._changed(name, keys, overrides)
        if not (selected and self.opened):
            is_default = name in self._default_pipelines.values()
            return self._specs(name, keys, ranges=not selected and not is_default)

        def make(pick: Pick) -> tuple[list[PipelineSpec], Sequence[Fault]]:
            return self._checked(partial(self._specs, keys=keys, pick=pick), name)

        self.spaces[name] = Space(name, make)
        return self._specs(name, keys, pick=first)

    def _specs(
        self, name: str, keys: Mapping[str, Tree], *, pick: Pick | None = None, ranges: bool = False
    ) -> list[PipelineSpec]:
        # Readers belong to the pipeline, not to stages. Two stages with equal readers once had two
        # batches and two budgets, or one, depending on whether the builder noticed (decision 47).
        roles = self._roles(name, keys.get("readers"))
        variants = SweepPoints(name, [ANSWER, *roles] if roles else None, pick=pick, ranges=ranges)
        tree = self.layers.pipelines[name]
        options: dict[str, list[tuple[Labels, Spec]]] = {}
        stages_of = {**KINDS, **{f"{ROLES}{role}": KINDS["reader"] for role in roles}}
        for key, kind in stages_of.items():
            stage = keys.get(key) or roles.get(key.removeprefix(ROLES))
            if stage is None and kind.default is None:
                more = f", or `{ANSWER}` among its readers" if roles else ""
                variants.faults.append(tree.fault(f"{name}: needs a {key}{more}"))
            elif stage is not None or kind.default:
                options[key] = variants.of_stage(stage or tree.with_value(kind.default), kind, key)
        points = variants.combined(tree, [*options.values()])
        self.faults.extend(variants.faults)
        settings = self._settings(name, keys)
        return [
            PipelineSpec(
                f"{name}{_suffix(labels)}", dict(zip(options, stages, strict=True)), **settings
            )
            for labels, stages in points
        ]

    @cached_property
    def _default_pipelines(self) -> Mapping[str, str]:
        tree = self.layers.default.items.get("pipelines")
        return {task: str(entry.plain()) for task, entry in (tree.items if tree else {}).items()}

    def _settings(self, name: str, keys: Mapping[str, Tree]) -> dict[str, Any]:
        """Returns the values of a pipeline's keys without stages, by attribute of its spec."""
        settings: dict[str, Any] = {}
        for key, (annotation, form) in _VALUES.items():
            if key in keys:
                value, problem = validate(Parameter(key, annotation, None), keys[key])
                if problem:
                    text = f"{name}.{key}: must be {form}, got {keys[key].plain()!r}"
                    self.faults.append(keys[key].fault(text))
                else:
                    settings[key] = value
        for key, (attribute, check) in _SECTIONS.items():
            if key in keys:
                settings[attribute], faults = check(name, keys[key])
                self.faults += faults
        texts = {key: settings[key] for key in ("tasks", "description") if key in settings}
        lists = {key: (v,) if isinstance(v, str) else tuple(v) for key, v in texts.items()}
        for task in lists.get("tasks", ()):
            if task not in self.layers.tasks:
                text = f"{name}.tasks: {no_such('task', task, self.layers.tasks)}"
                self.faults.append(keys["tasks"].fault(text))
        learner = keys["train"].items.get("pipeline") if "train" in keys else None
        if learner and learner.plain() not in self.layers.pipelines:
            text = no_such("pipeline", str(learner.plain()), self.layers.pipelines)
            self.faults.append(learner.fault(f"{name}.train.pipeline: {text}"))
        if "description" in lists:
            settings["description"] = " ".join(lists["description"])
        return {**settings, "tasks": lists.get("tasks", ())}

    def _changed(
        self, name: str, keys: Mapping[str, Tree], overrides: Sequence[Override]
    ) -> dict[str, Tree]:
        """Returns a pipeline's keys with `model`, then `--set` applied."""
        names = [override for override in overrides if override.path == ("model",)]
        tree = (names[-1].value if names else keys.get("model")) or self.layers.pipelines[name]
        try:
            changed = apply(names, keys)
            if "model" in changed:
                changed = with_model(changed)
            # After `model`, so that `--set reader.…` changes the model's reader (decision 44).
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

    def _roles(self, name: str, tree: Tree | None) -> Mapping[str, Tree]:
        """Returns the readers by role, without the reader of answers, which is `reader`."""
        if tree is not None and not (tree.items and all(map(str.isidentifier, tree.items))):
            fault = f"{name}.readers: must be a mapping of roles to readers, got {tree.plain()!r}"
            self.faults.append(tree.fault(fault))
            return {}
        roles = {role: child.as_class() for role, child in tree.items.items()} if tree else {}
        if answering := roles.pop(ANSWER, None):  # from a `--set` of all readers
            self.faults.append(answering.fault(f"{name}.readers.{ANSWER}: set `reader` instead"))
        return roles


def _check_budget(owner: str, tree: Tree) -> tuple[Budget, list[Fault]]:
    check = partial(setting, Budget, unknown="a budget has no such limit")
    limits, faults = settings_of(f"{owner}.budget", tree, check)
    return Budget(**limits) if not faults else Budget(), faults


_TEXTS = (str | list[str], "text, or a list of texts")
# Keys of pipelines with plain values: their types, and descriptions of these for messages.
_VALUES: Mapping[str, tuple[Any, str]] = {
    "tasks": _TEXTS,
    "normalised": (bool, "true or false"),
    "description": _TEXTS,
    "abstain": (Annotated[float, Ge(0), Le(1)], "one number from 0 to 1"),
    "tuned": (dict[str, Any], "a mapping, as `tune` writes it"),
}
# Keys of pipelines with settings: their attributes in a spec, and functions that check them.
_SECTIONS: Mapping[str, tuple[str, Callable[[str, Tree], tuple[Any, list[Fault]]]]] = {
    "train": ("training", check_training),
    "budget": ("budget", _check_budget),
    "placement": ("placement", check_placement),
}


def _suffix(labels: Labels) -> str:
    return "@" + ",".join(f"{path}={value}" for path, value in labels) if labels else ""
