"""Checked specifications: what a pipeline is before anything is built."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from leporello.config.parameters import Parameter, leaves, parameters, takes_list, validate
from leporello.config.placement import PlacementSpec
from leporello.config.training_settings import TrainingSpec
from leporello.core.annotations import SECRET_MARK, marked, roles_of
from leporello.core.calls.budget import NO_BUDGET, Budget
from leporello.core.calls.contracts import StageError
from leporello.core.errors import UserError, did_you_mean
from leporello.core.protocols import ANSWER, MetricEntry, Task
from leporello.core.records import JSON
from leporello.core.secrets import is_variable, key
from leporello.core.yaml.tree import parse

ROLES = "readers."  # what the keys of stages begin with that are readers of a role


@dataclass(frozen=True, slots=True)
class Spec:
    """A class and its checked parameters; nested stages are specs themselves.

    Attributes:
        name: Value of `class:`, with a file's path made absolute.
        cls: The class.
        params: Parameters that the YAML gives; the class has defaults for the rest.
    """

    name: str
    cls: type
    params: Mapping[str, Any]

    def build(self) -> Any:  # noqa: ANN401 -- of type `cls`
        """Returns a new instance, its nested stages built first, keys in place of their names.

        Raises:
            ValueError: The constructor refuses the combination of parameters.
            UserError: The environment variable of a key is not set.
        """
        secret = self._keys()
        given = {**self.params, **secret}
        return self.cls(
            **{n: _mapped(v, _with_key if n in secret else _built) for n, v in given.items()}
        )

    def arguments(self) -> dict[str, Any]:
        """Returns the value of every parameter, defaults filled in."""
        known = parameters(self.cls).values()
        return {p.name: self.params.get(p.name, p.default) for p in known}

    def resolved(self) -> dict[str, JSON]:
        """Returns the class and every parameter, defaults written out, as the YAML would.

        Left out are defaults that a YAML file could not give, such as objects.
        """
        known = parameters(self.cls)
        defaults = {p.name: p.default for p in known.values() if _can_be_written(p)}
        given = {name: _plain(value) for name, value in {**defaults, **self.params}.items()}
        return {"class": self.name, **{name: given[name] for name in known if name in given}}

    def given(self) -> dict[str, JSON]:
        """Returns the parameters that the YAML gives, as it would."""
        resolved = self.resolved()
        return {name: resolved[name] for name in self.params}

    def all_specs(self) -> Iterator[Spec]:
        """Yields this spec and those nested in it."""
        yield self
        for value in self.params.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Spec):
                    yield from item.all_specs()

    def variables(self) -> tuple[str, ...]:
        """Returns the environment variables that hold keys, nested stages' too: `$NAME`."""
        values = (value for spec in self.all_specs() for value in spec._keys().values())
        return tuple(dict.fromkeys(leaf for leaf in leaves([*values]) if is_variable(leaf)))

    def _keys(self) -> dict[str, Any]:
        """Returns the parameters that are keys as the file or their defaults have them."""
        return {
            name: value
            for name, value in self.arguments().items()
            if marked(parameters(self.cls)[name].annotation, SECRET_MARK)
            and any(map(is_variable, leaves(value)))
        }


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A named task.

    Attributes:
        name: Name of the task.
        spec: Class and parameters.
        metrics: Metrics in place of those that its class says; none if that has them as a
            parameter.
    """

    name: str
    spec: Spec
    metrics: tuple[MetricEntry, ...] = ()

    @property
    def has_splits(self) -> bool:
        """Whether the task names a split, or a path with a place for one."""
        known = parameters(self.spec.cls)
        if "split" not in known:
            return False
        named = self.spec.params.get("split", known["split"].default)
        return bool(named) or any("{split}" in str(value) for value in self.spec.params.values())

    def with_split(self, split: str) -> TaskSpec:
        """Returns the task with another split.

        Raises:
            UserError: The task has no splits.
        """
        if "split" not in parameters(self.spec.cls):
            raise UserError(f"task {self.name!r} ({self.spec.cls.__name__}) has no splits")
        return self._with(split=split)

    def with_metrics(self, metrics: Sequence[MetricEntry]) -> TaskSpec:
        """Returns the task with other metrics; with its own if there are none."""
        if not metrics:
            return self
        if "metrics" in parameters(self.spec.cls):
            return self._with(metrics=tuple(metrics))
        return replace(self, metrics=tuple(metrics))

    def adjusted(self, settings: str) -> TaskSpec:
        """Returns the task with `PARAMETER=VALUE`, or several with commas between, in its name too.

        Raises:
            UserError: There is no such parameter, or it takes no such value.
        """
        known, params = parameters(self.spec.cls), {}
        for name, _, text in (setting.partition("=") for setting in settings.split(",")):
            if name not in known or not text:
                unknown = f", and {self.spec.cls.__name__} has no parameter {name!r}"
                problem = f"{unknown}{did_you_mean(name, known)}" if name not in known else ""
                raise UserError(f"task {self.name}@{settings}: must be PARAMETER=VALUE{problem}")
            params[name], fault = validate(known[name], parse(text, None))
            if fault:
                raise UserError(f"task {self.name}@{settings}: {name} {fault}")
        return replace(self._with(**params), name=f"{self.name}@{settings}")

    def metrics_of(self, source: Task) -> tuple[MetricEntry, ...]:
        """Returns the metrics that count."""
        return self.metrics or tuple(source.metrics)

    def _with(self, **params: object) -> TaskSpec:
        return replace(self, spec=replace(self.spec, params={**self.spec.params, **params}))

    def resolved(self) -> dict[str, JSON]:
        """Returns the class and every parameter, and the metrics that the task was given."""
        resolved = self.spec.resolved()
        return {**resolved, "metrics": _plain(self.metrics)} if self.metrics else resolved


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline's stages, built.

    Attributes:
        chunker: Chunker.
        retriever: Retriever.
        reader: Reader of answers; of every role, where `roles` is empty.
        combiner: Combiner.
        enricher: Enricher, where it has one.
        roles: Readers of other roles, by role.
        budget: Limits of what one question may cost.
        abstain: Confidence below which an answer is withheld; None withholds none.
        no_answer: Text that stands for an answer that is withheld; the task has it.
    """

    chunker: Any
    retriever: Any
    reader: Any
    combiner: Any
    enricher: Any = None
    roles: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = NO_BUDGET
    abstain: float | None = None
    no_answer: str = ""

    @classmethod
    def of(
        cls,
        stages: Mapping[str, Any],
        budget: Budget = NO_BUDGET,
        abstain: float | None = None,
        no_answer: str = "",
    ) -> Pipeline:
        """Returns the pipeline of stages by key: `reader`, `readers.select`."""
        roles = {k.removeprefix(ROLES): v for k, v in stages.items() if k.startswith(ROLES)}
        others = {k: v for k, v in stages.items() if not k.startswith(ROLES)}
        more: Any = {"budget": budget, "abstain": abstain, "no_answer": no_answer}
        return cls(**others, roles=roles, **more)

    @property
    def readers(self) -> Mapping[str, Any]:
        """Readers by role, that of answers first."""
        return {ANSWER: self.reader, **self.roles}

    def reader_of(self, role: str) -> Any:  # noqa: ANN401 -- a reader
        """Returns the reader that has a role.

        Raises:
            StageError: None has.
        """
        if not self.roles or role in ("", ANSWER):
            return self.reader
        if role not in self.roles:
            hint = did_you_mean(role, self.readers)
            raise StageError(f"no reader has the role {role!r}{hint}")
        return self.roles[role]

    def all(self) -> tuple[Any, ...]:
        """Returns all of them, in the order of their work."""
        enricher = () if self.enricher is None else (self.enricher,)
        first = (self.chunker, *enricher, self.retriever)
        return (*first, self.reader, *self.roles.values(), self.combiner)


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """One pipeline, or one point of a sweep over it.

    Attributes:
        name: `mine`, or `mine@retriever.k=5`.
        stages: Stages by key; `enricher` where it has one, `readers.ROLE` where a role has a reader
            of its own.
        tasks: Names of tasks that `run` takes when none is named.
        normalised: Whether the task brings answers into the form that its metrics read.
        description: Description for `list`.
        training: Settings of the reader's training; no run depends on them.
        placement: Settings of where it runs; no result depends on them.
        budget: Limits of what one question may cost.
        abstain: Confidence below which an answer is withheld; None withholds none.
        tuned: Record of the search that chose it, as `tune` writes it; empty if none did.
    """

    name: str
    stages: Mapping[str, Spec]
    tasks: tuple[str, ...] = ()
    normalised: bool = False
    description: str = field(default="", compare=False)
    training: TrainingSpec = field(default=TrainingSpec(), compare=False)
    placement: PlacementSpec = field(default=PlacementSpec(), compare=False)
    budget: Budget = NO_BUDGET
    abstain: float | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def tuned_on(self) -> frozenset[str]:
        """The documents that it was chosen on, as `shortened` has them."""
        tasks = self.tuned.get("tasks")
        told = tasks.values() if isinstance(tasks, Mapping) else ()
        lists = (task.get("documents") for task in told if isinstance(task, Mapping))
        return frozenset(str(one) for each in lists if isinstance(each, list) for one in each)

    def build(self, make: Callable[[Spec], Any] = Spec.build) -> Pipeline:
        """Returns the stages, built; models load on first use.

        Args:
            make: Function that builds a stage, such as one that keeps those that it built.
        """
        stages = {key: make(spec) for key, spec in self.stages.items()}
        return Pipeline.of(stages, self.budget, self.abstain)

    @property
    def readers(self) -> Mapping[str, Spec]:
        """Readers by role, that of answers first."""
        roles = {k.removeprefix(ROLES): s for k, s in self.stages.items() if k.startswith(ROLES)}
        return {ANSWER: self.stages["reader"], **roles}

    def all_specs(self) -> Iterator[Spec]:
        """Yields its stages and those nested in them."""
        return chain.from_iterable(stage.all_specs() for stage in self.stages.values())

    def unasked(self) -> list[str]:
        """Returns the roles with readers that no parameter of a stage names."""
        asked = {role for spec in self.all_specs() for role in roles_of(spec.cls, spec.arguments())}
        return [role for role in self.readers if role not in {*asked, ANSWER}]

    def variables(self) -> tuple[str, ...]:
        """Returns the environment variables that hold its keys: `$NAME`."""
        found = (stage.variables() for stage in self.stages.values())
        return tuple(dict.fromkeys(chain.from_iterable(found)))

    def resolved(self) -> dict[str, JSON]:
        """Returns the pipeline with every default written out."""
        resolved: dict[str, JSON] = {key: spec.resolved() for key, spec in self.stages.items()}
        stages = {key: value for key, value in resolved.items() if not key.startswith(ROLES)}
        if len(stages) < len(resolved):
            roles = resolved.keys() - stages.keys()
            stages["readers"] = {key.removeprefix(ROLES): resolved[key] for key in sorted(roles)}
        normalised: dict[str, JSON] = {"normalised": True} if self.normalised else {}
        limits: dict[str, JSON] = {"budget": self.budget.row()} if self.budget else {}
        withheld: dict[str, JSON] = {} if self.abstain is None else {"abstain": self.abstain}
        return stages | normalised | limits | withheld


def shortened(document: str) -> str:
    """Returns a document's SHA-256 as the record of a search holds it."""
    return document[:16]


@dataclass(frozen=True)
class StageFactory:
    """Builds each distinct stage once, so that a model is loaded once for all pipelines."""

    _built: dict[str, Any] = field(default_factory=dict)

    def build(self, pipeline: PipelineSpec) -> Pipeline:
        """Returns the pipeline's stages."""
        return pipeline.build(self.stage)

    def stage(self, spec: Spec) -> Any:  # noqa: ANN401 -- of the spec's class
        """Returns the stage that this spec and all equal ones stand for."""
        key = json.dumps(spec.resolved(), sort_keys=True)
        if key not in self._built:
            self._built[key] = spec.build()
        return self._built[key]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 -- any parameter
    """Returns a value with what holds nothing itself changed."""
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {name: _mapped(item, change) for name, item in value.items()}
    return change(value)


def _built(value: Any) -> Any:  # noqa: ANN401 -- any parameter
    return value.build() if isinstance(value, Spec) else value


def _with_key(value: Any) -> Any:  # noqa: ANN401 -- any parameter
    return key(value) if is_variable(value) else value


def _plain(value: Any) -> JSON:  # noqa: ANN401 -- any parameter
    if isinstance(value, Spec):
        return value.resolved()
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def _can_be_written(parameter: Parameter) -> bool:
    """Says whether a file that gives a parameter its default would load to the same."""
    value = parameter.default
    if isinstance(value, (tuple, list)):
        return takes_list(parameter.annotation) is True and all(map(_is_plain, value))
    return not parameter.required and _is_plain(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, Path))
