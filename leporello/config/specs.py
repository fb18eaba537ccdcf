"""Checked specifications of pipelines and tasks, from which their classes are built."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from leporello.config.parameters import Parameter, leaves, parameters, takes_list, validate
from leporello.config.placement import Placement
from leporello.config.training_settings import TrainingSpec
from leporello.core.annotations import MODEL_MARK, SECRET_MARK, marked, roles_of
from leporello.core.calls.budget import NO_BUDGET, Budget
from leporello.core.calls.contracts import StageError, sees_gold
from leporello.core.errors import UserError, did_you_mean
from leporello.core.protocols import ANSWER, MetricEntry, Task
from leporello.core.records import JSON
from leporello.core.secrets import is_variable, key
from leporello.core.yaml.tree import parse

Place: TypeAlias = tuple[Path | None, int]  # file and line; without a file, the command line
ROLES = "readers."  # prefix of the stage keys of readers that have a role


@dataclass(frozen=True, slots=True)
class Spec:
    """A class and its checked parameters; nested stages are specs themselves."""

    name: str  # value of `class:`, with a file's path made absolute
    cls: type
    params: Mapping[str, Any]  # those that the YAML gives; the class has defaults for the others
    # File and line of each key in the YAML, for messages.
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def build(self) -> Any:  # noqa: ANN401 -- of type `cls`
        """Returns a new instance, with nested stages and keys; raises ValueError if it refuses."""
        secret = self._keys()
        values = {**self.params, **secret}
        return self.cls(**{n: _built(v, is_key=n in secret) for n, v in values.items()})

    def shared(self, built: dict[str, Any]) -> Any:  # noqa: ANN401 -- of type `cls`
        """Returns the instance of an equal spec in `built`, so that a model is loaded once."""
        key = json.dumps(self.resolved(), sort_keys=True)
        if key not in built:
            built[key] = self.build()
        return built[key]

    def arguments(self) -> dict[str, Any]:
        """Returns the value of every parameter, defaults filled in."""
        declared = parameters(self.cls).values()
        return {p.name: self.params.get(p.name, p.default) for p in declared}

    def resolved(self) -> dict[str, JSON]:
        """Returns the class and every parameter that YAML can express, defaults included."""
        declared = parameters(self.cls)
        defaults = {p.name: p.default for p in declared.values() if _can_be_written(p)}
        values = {name: _plain(value) for name, value in {**defaults, **self.params}.items()}
        return {"class": self.name, **{name: values[name] for name in declared if name in values}}

    def given(self) -> dict[str, JSON]:
        """Returns the parameters that the YAML gives, in its form."""
        return {name: _plain(value, Spec.configured) for name, value in self.params.items()}

    def configured(self) -> dict[str, JSON]:
        """Returns the class and the parameters that the YAML gives, also of nested stages."""
        return {"class": self.name, **self.given()}

    def all_specs(self) -> Iterator[Spec]:
        """Yields this spec and those nested in it."""
        yield self
        for value in self.params.values():
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Spec):
                    yield from item.all_specs()

    def model_paths(self) -> Iterator[tuple[str, Place]]:
        """Yields the paths of models of this and nested specs, with their places in the YAML."""
        for spec in self.all_specs():
            for name, value in spec.params.items():
                if marked(parameters(spec.cls)[name].annotation, MODEL_MARK):
                    paths = (m for m in leaves(value) if str(m).startswith("/"))
                    yield from ((m, spec.places.get(name, (None, 0))) for m in paths)

    def variables(self) -> tuple[str, ...]:
        """Returns the environment variables (`$NAME`) with keys of this and nested specs."""
        values = (value for spec in self.all_specs() for value in spec._keys().values())
        return tuple(dict.fromkeys(leaf for leaf in leaves([*values]) if is_variable(leaf)))

    def _keys(self) -> dict[str, Any]:
        """Returns the parameters with keys, as names of environment variables."""
        return {
            name: value
            for name, value in self.arguments().items()
            if marked(parameters(self.cls)[name].annotation, SECRET_MARK)
            and any(map(is_variable, leaves(value)))
        }


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A named task; its `metrics` replace those of the class."""

    name: str
    spec: Spec
    metrics: tuple[MetricEntry, ...] = ()

    @property
    def has_splits(self) -> bool:
        """Whether the task names a split, or a path that contains `{split}`."""
        declared = parameters(self.spec.cls)
        if "split" not in declared:
            return False
        split = self.spec.params.get("split", declared["split"].default)
        return bool(split) or any("{split}" in str(value) for value in self.spec.params.values())

    def with_split(self, split: str) -> TaskSpec:
        """Returns the task with another split."""
        if "split" not in parameters(self.spec.cls):
            raise UserError(f"task {self.name!r} ({self.spec.cls.__name__}) has no splits")
        return self._with(split=split)

    def with_metrics(self, metrics: Sequence[MetricEntry]) -> TaskSpec:
        """Returns the task with other metrics; without any, the task keeps its own metrics."""
        return replace(self, metrics=tuple(metrics)) if metrics else self

    def adjusted(self, settings: str) -> TaskSpec:
        """Returns the task with other parameters, `PARAMETER=VALUE,…`, which its name includes."""
        declared, params = parameters(self.spec.cls), {}
        for name, _, text in (setting.partition("=") for setting in settings.split(",")):
            if name not in declared or not text:
                unknown = f", and {self.spec.cls.__name__} has no parameter {name!r}"
                problem = f"{unknown}{did_you_mean(name, declared)}" if name not in declared else ""
                raise UserError(f"task {self.name}@{settings}: must be PARAMETER=VALUE{problem}")
            try:
                params[name] = validate(declared[name], parse(text, None))
            except ValueError as error:
                raise UserError(f"task {self.name}@{settings}: {name} {error}") from None
        return replace(self._with(**params), name=f"{self.name}@{settings}")

    def metrics_of(self, source: Task) -> tuple[MetricEntry, ...]:
        """Returns the metrics that score the task."""
        return self.metrics or tuple(source.metrics)

    def _with(self, **params: object) -> TaskSpec:
        return replace(self, spec=replace(self.spec, params={**self.spec.params, **params}))

    def resolved(self) -> dict[str, JSON]:
        """Returns the class, every parameter, and the metrics that replace those of the class."""
        resolved = self.spec.resolved()
        return {**resolved, "metrics": _plain(self.metrics)} if self.metrics else resolved


@dataclass(frozen=True)
class Pipeline:
    """The built stages of a pipeline."""

    chunker: Any
    retriever: Any
    reader: Any  # reader of answers; it has every role if `roles` is empty
    combiner: Any
    enricher: Any = None
    roles: Mapping[str, Any] = field(default_factory=dict)
    budget: Budget = NO_BUDGET
    abstain: float | None = None  # confidence below which an answer is withheld; None: never
    no_answer: str = ""  # text that replaces a withheld answer, a property of the task

    @property
    def readers(self) -> Mapping[str, Any]:
        """Readers by role, the reader of answers first."""
        return {ANSWER: self.reader, **self.roles}

    def reader_of(self, role: str) -> Any:  # noqa: ANN401 -- a reader
        """Returns the reader that has a role."""
        # A single reader has all roles, so that only different models need roles (decision 47).
        if not self.roles or role in ("", ANSWER):
            return self.reader
        if role not in self.roles:
            hint = did_you_mean(role, self.readers)
            raise StageError(f"no reader has the role {role!r}{hint}")
        return self.roles[role]

    @cached_property
    def is_oracle(self) -> bool:
        """Whether the combiner sees references and evidence; not determined for each example."""
        return sees_gold(self.combiner)

    def all(self) -> tuple[Any, ...]:
        """Returns all stages, in the order in which they run."""
        enricher = () if self.enricher is None else (self.enricher,)
        first = (self.chunker, *enricher, self.retriever)
        return (*first, self.reader, *self.roles.values(), self.combiner)


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """One pipeline, or one point of a sweep over it.

    Attributes:
        name: `mine`, or `mine@retriever.k=5`.
        stages: Stages by key; `enricher` and `readers.ROLE` only if the pipeline has them.
        tasks: Names of the tasks that `run` takes by default.
        normalised: Whether the task brings answers into the form that its metrics read.
        training: Settings of the reader's training; runs ignore them.
        placement: Where it runs; no result depends on it, except for the number of threads.
        abstain: Confidence below which an answer is withheld; with None every answer is returned.
        tuned: Record of the search that chose the pipeline, as `tune` writes it; empty without one.
    """

    name: str
    stages: Mapping[str, Spec]
    tasks: tuple[str, ...] = ()
    normalised: bool = False
    description: str = field(default="", compare=False)
    training: TrainingSpec = field(default=TrainingSpec(), compare=False)
    placement: Placement = field(default=Placement(), compare=False)
    budget: Budget = NO_BUDGET
    abstain: float | None = None
    tuned: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def tuned_on(self) -> frozenset[str]:
        """The documents that the search used, as the hashes of `shortened`."""
        tasks = self.tuned.get("tasks")
        records = tasks.values() if isinstance(tasks, Mapping) else ()
        lists = (record.get("documents") for record in records if isinstance(record, Mapping))
        hashes = chain.from_iterable(listed for listed in lists if isinstance(listed, list))
        return frozenset(map(str, hashes))

    def build(self, built: dict[str, Any] | None = None) -> Pipeline:
        """Returns the built stages, those in `built` if equal; models are loaded on first use."""
        make: Callable[[Spec], Any]
        make = Spec.build if built is None else partial(Spec.shared, built=built)
        stages = {key: make(spec) for key, spec in self.stages.items() if not key.startswith(ROLES)}
        roles = {role: make(spec) for role, spec in self.readers.items() if role != ANSWER}
        more: Any = {"budget": self.budget, "abstain": self.abstain}
        return Pipeline(**stages, roles=roles, **more)

    @property
    def readers(self) -> Mapping[str, Spec]:
        """Readers by role, the reader of answers first."""
        roles = {k.removeprefix(ROLES): s for k, s in self.stages.items() if k.startswith(ROLES)}
        return {ANSWER: self.stages["reader"], **roles}

    def all_specs(self) -> Iterator[Spec]:
        """Yields the pipeline's stages and the stages nested in them."""
        return chain.from_iterable(stage.all_specs() for stage in self.stages.values())

    def unasked(self) -> list[str]:
        """Returns the roles that have a reader but that no stage's parameter names."""
        # Only a note: such a pipeline works. A role without a reader is a fault (decision 47).
        used = {role for spec in self.all_specs() for role in roles_of(spec.cls, spec.arguments())}
        return [role for role in self.readers if role not in {*used, ANSWER}]

    def variables(self) -> tuple[str, ...]:
        """Returns the environment variables (`$NAME`) that hold the pipeline's keys."""
        groups = (stage.variables() for stage in self.stages.values())
        return tuple(dict.fromkeys(chain.from_iterable(groups)))

    def resolved(self) -> dict[str, JSON]:
        """Returns the pipeline with every default included."""
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
    """Returns a document's SHA-256, shortened as in the record of a search."""
    return document[:16]


def _built(value: Any, *, is_key: bool) -> Any:  # noqa: ANN401 -- any parameter
    """Returns a value with nested stages built, or with keys in place of their variables."""
    if type(value) in (tuple, list):
        return type(value)(_built(item, is_key=is_key) for item in value)
    if isinstance(value, dict):
        return {name: _built(item, is_key=is_key) for name, item in value.items()}
    if isinstance(value, Spec):
        return value.build()
    return key(value) if is_key and is_variable(value) else value


def _plain(value: Any, nested: Callable[[Spec], dict[str, JSON]] = Spec.resolved) -> JSON:  # noqa: ANN401 -- any parameter
    if isinstance(value, Spec):
        return nested(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item, nested) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, nested) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value) if isinstance(value, Path) else repr(value)


def _can_be_written(parameter: Parameter) -> bool:
    """Returns whether a parameter's default survives being written to YAML and read again."""
    value = parameter.default
    if isinstance(value, (tuple, list)):
        return takes_list(parameter.annotation) is True and all(map(_is_plain, value))
    return not parameter.required and _is_plain(value)


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, Path))
