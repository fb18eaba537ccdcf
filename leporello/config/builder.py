"""Builds checked pipelines, tasks and suites from the trees of files."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import call
from typing import Annotated, Any

from annotated_types import Ge, Le

from leporello.config.config import Config, matching
from leporello.config.layers import Layers, Override, apply
from leporello.config.metrics import entry_of, metric_specs
from leporello.config.named_model import check_combiner, with_model
from leporello.config.parameters import Parameter, parameters, setting, settings_of, validate
from leporello.config.placement import check_placement
from leporello.config.space import Pick, Space, first
from leporello.config.specs import ROLES, PipelineSpec, Spec, TaskSpec
from leporello.config.suite_files import suite_of, unknown_names
from leporello.config.suites import Suite
from leporello.config.sweeps import SpecBuilder, all_picks
from leporello.config.training_settings import check_training
from leporello.core.calls.budget import Budget
from leporello.core.environment.classes import Lazy
from leporello.core.environment.input_limits import POINTS
from leporello.core.errors import ConfigError, Fault, UserError, build_all, did_you_mean, no_such
from leporello.core.protocols import ANSWER, KINDS, TASK
from leporello.core.yaml.tree import Tree

_DEFAULTS = ("pipeline", "task", "pipelines")


class ConfigBuilder:
    """Turns the trees of files into specs."""

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
        self.opened, self.spaces = opened, dict[str, Space]()
        self.is_named = bool(names) or opened
        requested = names or [self._default("pipeline")]
        self.selected = {p for name in requested for p in matching(name, layers.pipelines)}
        self.pipelines = Lazy(layers.pipelines, self._pipeline)
        self.tasks = Lazy(layers.tasks, self._task)
        self.suites = Lazy(layers.suites, self._suite)

    def load(self) -> Config:
        """Checks the user's declarations and the selected pipelines; raises all faults together."""
        layers = self.layers
        names = dict.fromkeys(layers.pipelines.own)
        if self.overrides or self.is_named:
            names |= {p: None for p in layers.pipelines if p in self.selected}
        checks: list[Callable[[], object]] = [
            partial(self.pipelines.of, names),
            partial(self.tasks.of, layers.tasks.own),
            partial(self.suites.of, layers.suites.own),
            self._check_rest,
        ]
        build_all(checks, call)
        return Config(
            self.pipelines, self.tasks, self.suites, self._default("pipeline"),
            self._default("task"), self._default_pipelines, layers.collections,
        )  # fmt: skip

    def _suite(self, name: str) -> Suite:
        suite = suite_of(self.layers, name)
        if faults := [*unknown_names(suite, self.layers.pipelines, self.tasks)]:
            raise ConfigError(faults)
        return suite

    def _check_rest(self) -> None:
        faults = [*self.layers.faults, *self._faults_of_default(), *self._repeated_names()]
        if faults:
            raise ConfigError(faults)

    def _repeated_names(self) -> Iterator[Fault]:
        """Yields faults for points with the same name, which would share a directory."""
        owner: dict[str, str] = {}
        for name, points in self.pipelines.ready.items():
            for point in points:
                if point.name in owner:
                    text = f"{name}: two pipelines are named {point.name!r}"
                    yield self.layers.pipelines[name].fault(text)
                owner[point.name] = name

    def _default(self, key: str) -> str:
        return str(self.layers.default.at(key).plain() or "")

    def _faults_of_default(self) -> Iterator[Fault]:
        tree, references = self.layers.default, list[tuple[str, str, str, Tree]]()
        for key, child in tree.items.items():
            if key not in _DEFAULTS:
                hint = did_you_mean(key, _DEFAULTS)
                yield child.fault(f"default: unknown key {key!r}{hint}")
        for key in ("pipeline", "task"):
            if key in tree.items:
                references.append((f"default.{key}", key, self._default(key), tree))
            else:
                yield tree.fault(f"default: needs a {key}")
        for task, pipeline in self._default_pipelines.items():
            path, child = f"default.pipelines.{task}", tree.items["pipelines"].items[task]
            references += [(path, "task", task, child), (path, "pipeline", pipeline, child)]
        for path, kind, name, place in references:
            names = self.layers.tasks if kind == "task" else self.layers.pipelines
            if name not in names:
                yield place.fault(f"{path}: {no_such(kind, name, names)}")

    def _task(self, name: str) -> TaskSpec:
        tree = self.layers.tasks[name]
        builder = SpecBuilder(f"tasks.{name}")
        keys = {key: child for key, child in tree.items.items() if key != "metrics"}
        if tree.file and tree.file.name == "run.yaml":  # of 0.2, which normalised in the task
            keys.pop("normalised", None)
        checks: list[Callable[[], Any]] = [
            partial(builder.of_class, tree.with_value(keys), TASK),
            partial(metric_specs, builder, tree.items.get("metrics")),
        ]
        spec, listed = build_all(checks, call)
        paths = self.layers.collections
        if paths and "collections" in parameters(spec.cls) and "collections" not in spec.params:
            spec = dataclasses.replace(spec, params={**spec.params, "collections": paths})
        return TaskSpec(name, spec).with_metrics([*map(entry_of, listed)])

    def _pipeline(self, name: str) -> Sequence[PipelineSpec]:
        faults, replaced = list[Fault](), list[Fault]()
        keys = self.layers.resolve(name, faults, replaced)
        points = [] if keys is None else self._points(name, keys, faults)
        if faults:
            raise ConfigError([*faults, *replaced])
        return points

    def _points(
        self, name: str, keys: Mapping[str, Tree], faults: list[Fault]
    ) -> list[PipelineSpec]:
        selected, tree = name in self.selected, self.layers.pipelines[name]
        overrides = [*(self.overrides if selected else ()), *self.placement]
        keys = self._changed(name, keys, overrides, faults)
        roles = [key.removeprefix(ROLES) for key in keys if key.startswith(ROLES)]
        settings = self._settings(name, keys, faults)
        is_opened = selected and self.opened
        # In a pipeline that is not run, a range is its lowest number.
        lowest = None if selected or name in self._default_pipelines.values() else first
        common: dict[tuple[str, ...], Any] = {}

        def make(pick: Pick) -> PipelineSpec:
            number = pick if is_opened else lowest
            shared = {} if is_opened else common
            builder = SpecBuilder(name, [ANSWER, *roles] if roles else None, pick, number, shared)
            stages = _stages(builder, tree, keys)
            labels = ",".join(f"{path}={value}" for path, value in builder.labels)
            ending = f"@{labels}" if labels and not is_opened else ""
            return PipelineSpec(f"{name}{ending}", stages, **settings)

        if is_opened:
            self.spaces[name] = Space(name, make)
        points: list[PipelineSpec] = []
        for number, pick in enumerate([first] if is_opened else all_picks(POINTS + 1)):
            if number == POINTS:
                text = f"sweeps make more than {POINTS:,} points: sweep fewer values, split the"
                faults.append(tree.fault(f"{name}: {text} pipeline, or let `tune` choose"))
            try:
                points.append(make(pick))
            except ConfigError as error:
                faults += error.faults
        return points

    @cached_property
    def _default_pipelines(self) -> Mapping[str, str]:
        entries = self.layers.default.at("pipelines").items.items()
        return {task: str(entry.plain()) for task, entry in entries}

    def _settings(self, name: str, keys: Mapping[str, Tree], faults: list[Fault]) -> dict[str, Any]:
        """Returns the values of a pipeline's keys without stages, by attribute of its spec."""
        settings: dict[str, Any] = {}
        for key, (attribute, check) in _SETTINGS.items():
            try:
                if key in keys:
                    settings[attribute] = check(f"{name}.{key}", keys[key])
            except ConfigError as error:
                faults += error.faults
        for task in settings.get("tasks", ()):
            if task not in self.layers.tasks:
                text = f"{name}.tasks: {no_such('task', task, self.layers.tasks)}"
                faults.append(keys["tasks"].fault(text))
        learner = keys["train"].items.get("pipeline") if "train" in keys else None
        if learner and learner.plain() not in self.layers.pipelines:
            text = no_such("pipeline", str(learner.plain()), self.layers.pipelines)
            faults.append(learner.fault(f"{name}.train.pipeline: {text}"))
        return settings

    def _changed(
        self,
        name: str,
        keys: Mapping[str, Tree],
        overrides: Sequence[Override],
        faults: list[Fault],
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
            faults.append(Fault(None, 0, f"--set for {name}: {error.args[0]}"))
        except ConfigError as error:
            faults += error.faults
        except UserError as error:
            faults.append(tree.fault(f"{name}: {error}"))
        else:
            return changed
        return {key: child for key, child in keys.items() if key != "model"}


def _stages(builder: SpecBuilder, tree: Tree, keys: Mapping[str, Tree]) -> dict[str, Spec]:
    """Returns the stages of a pipeline by key; `tree` is its place."""
    # Readers belong to the pipeline, not to stages. Two stages with equal readers once had two
    # batches and two budgets, or one, depending on whether the builder noticed (decision 47).
    kinds = {**KINDS, **{key: KINDS["reader"] for key in keys if key.startswith(ROLES)}}

    def stage(key: str) -> tuple[str, Spec]:
        kind = kinds[key]
        if key not in keys and kind.default is None:
            more = f", or `{ANSWER}` among its readers" if builder.roles else ""
            raise ConfigError([tree.fault(f"{builder.owner}: needs a {key}{more}")])
        return key, builder.of_stage(keys.get(key) or tree.with_value(kind.default), kind, key)

    # An empty default: no such stage.
    return dict(build_all([key for key in kinds if key in keys or kinds[key].default != ""], stage))


def _check_value(annotation: Any, form: str, path: str, tree: Tree) -> Any:  # noqa: ANN401 -- any type
    try:
        return validate(Parameter(path, annotation, None), tree)
    except ValueError:
        text = f"{path}: must be {form}, got {tree.plain()!r}"
        raise ConfigError([tree.fault(text)]) from None


def _check_texts(path: str, tree: Tree) -> tuple[str, ...]:
    value = _check_value(str | list[str], "text, or a list of texts", path, tree)
    return (value,) if isinstance(value, str) else tuple(value)


# Keys of pipelines without stages: their attributes in a spec, and functions that check them.
_SETTINGS: Mapping[str, tuple[str, Callable[[str, Tree], Any]]] = {
    "tasks": ("tasks", _check_texts),
    "description": ("description", lambda path, tree: " ".join(_check_texts(path, tree))),
    "normalised": ("normalised", partial(_check_value, bool, "true or false")),
    "abstain": (
        "abstain",
        partial(_check_value, Annotated[float, Ge(0), Le(1)], "one number from 0 to 1"),
    ),
    "tuned": (
        "tuned",
        partial(_check_value, dict[str, Any], "a mapping, as `tune` writes it"),
    ),
    "train": ("training", check_training),
    "budget": (
        "budget",
        lambda path, tree: Budget(**settings_of(path, tree, partial(setting, Budget))),
    ),
    "placement": ("placement", check_placement),
}
