"""Turns the tree of a stage into a spec, with one option of each sweep."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from leporello.config.built_in import built_in_files
from leporello.config.classes import fault_of_class
from leporello.config.parameters import (
    Parameter,
    fault_of_key,
    nested_kind,
    parameters,
    takes_list,
    validate,
)
from leporello.config.space import Choice, Options, Pick, range_of
from leporello.config.specs import Spec
from leporello.core.annotations import BACKEND_MARK, ROLE_MARK, marked
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.environment.input_limits import POINTS
from leporello.core.errors import ConfigError, UserError, build_all, did_you_mean
from leporello.core.protocols import BACKEND, Kind
from leporello.core.records import JSON
from leporello.core.secrets import is_set, redact
from leporello.core.yaml.tree import Tree, parse

# Path in a pipeline; a part with a leading colon is the label of an option that was picked above.
_Path: TypeAlias = tuple[str, ...]


@dataclass
class SpecBuilder:
    """Turns trees into specs and picks an option of each sweep; raises ConfigError for faults."""

    owner: str  # pipeline or task of the trees; every fault begins with it
    roles: Collection[str] | None = None  # roles that readers have; None allows any role
    pick: Pick | None = None  # picks options; None allows no sweeps
    number: Pick | None = None  # picks numbers of ranges; None allows no ranges
    # By path: specs without choices, and options of sweeps. The points of a pipeline share them.
    shared: dict[_Path, Any] = field(default_factory=dict)
    labels: list[tuple[str, str]] = field(default_factory=list)  # paths and names of the options

    def of_stage(self, tree: Tree, kind: Kind, *path: str) -> Spec:
        """Returns the spec of a stage, or of the picked stage of a sweep."""
        if is_range(tree):
            raise self._fault(tree, path, "a stage cannot be a range, which is only for numbers")
        if (swept := swept_in(tree)) is not None:
            option, below = self._picked(tree, swept, path, _class_names)
            return self.of_stage(option, kind, *below)
        mapping = tree.as_class()
        if not isinstance(mapping.value, dict):
            problem = (
                f"a stage is a NAME, or a mapping such as {{class: NAME}}, got {tree.plain()!r}"
            )
            raise self._fault(tree, path, problem)
        return self.of_class(mapping, kind, *path)

    def _picked(
        self,
        tree: Tree,
        options: Sequence[Tree],
        path: _Path,
        names_of: Callable[[Sequence[Tree]], Sequence[str]],
    ) -> tuple[Tree, _Path]:
        """Returns the picked option and its path."""
        if not options:
            raise self._fault(tree, path, "a sweep needs at least one value")
        if len(options) > POINTS:
            raise self._fault(tree, path, f"a sweep may have at most {POINTS:,} values")
        if len(options) > 1 and not self.pick:
            raise self._fault(tree, path, "only parameters of stages can be swept")
        key = (*path, "")  # no part of a path is empty
        if key not in self.shared:
            self.shared[key] = Options(_distinct_labels(options)), names_of(options)
        choice, names = self.shared[key]
        number = int(self.pick(_place(path), choice)) if self.pick and len(options) > 1 else 0
        self.labels.append((_text(path), names[number]))
        return options[number], (*path, f":{choice.labels[number]}")

    def of_class(self, tree: Tree, kind: Kind, *path: str) -> Spec:
        """Returns the spec of a mapping with `class`."""
        if path not in self.shared:
            cls, labels = self._find(tree, kind, path), len(self.labels)
            params = self._parameters(tree, cls, path)
            name = _absolute(str(tree.items["class"].plain()), tree.items["class"])
            places = {key: (child.file, child.line) for key, child in tree.items.items()}
            spec = Spec(name, cls, params, places)
            self._try_to_build(spec, tree, path)
            if len(self.labels) > labels:
                return spec
            self.shared[path] = spec
        shared: Spec = self.shared[path]
        return shared

    def _find(self, tree: Tree, kind: Kind, path: _Path) -> type:
        entry = tree.items.get("class")
        if entry is None or not isinstance(entry.value, str):
            raise self._fault(entry or tree, path, "needs `class: NAME`")
        try:
            # Plug-ins must not replace the classes of built-in files.
            cls: type = find_class(
                entry.value, kind, entry.folder, ours=entry.file in built_in_files()
            )
            problem = fault_of_class(cls, kind)
        except ClassError as error:
            problem = str(error)
        if problem:
            raise self._fault(entry, (*path, "class"), problem)
        return cls

    def _parameters(self, tree: Tree, cls: type, path: _Path) -> dict[str, Any]:
        allowed = parameters(cls)
        children = {name: child for name, child in tree.items.items() if name != "class"}

        def check(name: str) -> tuple[str, Any]:
            child, parameter = children.get(name), allowed.get(name)
            if parameter is None:
                moved = "; since 0.3 it is a key of pipelines, false by default"
                hint = moved if name == "normalised" else did_you_mean(name, allowed)
                problem = f"{cls.__name__} has no parameter {name!r}{hint}"
                raise self._fault(children[name], (*path, name), problem)
            if child is None and parameter.required:
                raise self._fault(tree, path, f"{cls.__name__} needs the parameter {parameter}")
            # First, since messages of other faults repeat the value.
            if fault := fault_of_key(parameter, child.plain() if child else parameter.default):
                source = "" if child else f"the default in {cls.__name__}: "
                raise self._fault(child or tree, (*path, name), f"{source}{fault}")
            return name, self._value(parameter, child, (*path, name)) if child else None

        values = dict(build_all(dict.fromkeys([*children, *allowed]), check))
        return {name: values[name] for name in children}

    def _value(self, parameter: Parameter, tree: Tree, path: _Path) -> Any:  # noqa: ANN401 -- of any type
        if is_range(tree):
            return self._number(parameter, tree, path)
        swept, listed = swept_in(tree), takes_list(parameter.annotation)
        if swept is None and isinstance(tree.value, list) and not listed:
            if listed is None:
                problem = (
                    "takes a list or a single value, so a list is ambiguous;"
                    f" write {{sweep: {tree.plain()}}} to sweep"
                )
                raise self._fault(tree, path, problem)
            swept = tree.value
        kind = nested_kind(parameter.annotation)
        if swept is None:
            return self._one(parameter, tree, path, kind)
        if kind and not listed:
            sweep = tree.with_value({"sweep": tree.with_value([*swept])})
            return self.of_stage(sweep, kind, *path)
        option, below = self._picked(tree, swept, path, _positions if kind else _value_labels)
        return self._one(parameter, option, below, kind)

    def _number(self, parameter: Parameter, tree: Tree, path: _Path) -> Any:  # noqa: ANN401 -- of any type
        if self.number is None:
            problem = "only `tune` allows a range; give one value, or several as {sweep: […]}"
            raise self._fault(tree, path, problem)
        try:
            choice = range_of(tree)
        except ValueError as error:
            raise self._fault(tree, path, str(error)) from None
        with suppress(ValueError):  # the parameter is an integer
            validate(parameter, tree.with_value(choice.low + 0.5))
            choice = replace(choice, is_integer=False)
        number = choice.value(self.number(_place(path), choice))
        return self._one(parameter, tree.with_value(number), path, None)

    def _one(self, parameter: Parameter, tree: Tree, path: _Path, kind: Kind | None) -> Any:  # noqa: ANN401 -- of any type
        if kind is None:
            try:
                value = validate(parameter, tree)
                self._check_name(parameter, value)
            except (ValueError, ClassError) as error:
                raise self._fault(tree, path, str(error)) from None
            return value
        if tree.value is None and parameter.default is None:  # run.yaml includes such defaults
            return None
        if isinstance(tree.value, list):
            places = [*enumerate(tree.value)]
            return tuple(build_all(places, lambda p: self.of_stage(p[1], kind, *path, str(p[0]))))
        if takes_list(parameter.annotation) and swept_in(tree) is None:
            raise self._fault(tree, path, f"needs a list of {kind.key}s, got {tree.plain()!r}")
        return self.of_stage(tree, kind, *path)

    def _check_name(self, parameter: Parameter, value: object) -> None:
        """Raises ClassError for an unknown backend, ValueError for an unknown role."""
        if marked(parameter.annotation, BACKEND_MARK):  # the constructor would report it last
            find_class(str(value), BACKEND, Path())
        if self.roles is None or not marked(parameter.annotation, ROLE_MARK):
            return
        for role in value if isinstance(value, (tuple, list)) else (value,):
            if role and role not in self.roles:
                hint = did_you_mean(str(role), self.roles)
                raise ValueError(f"no reader has the role {role!r}{hint}")

    def _try_to_build(self, spec: Spec, tree: Tree, path: _Path) -> None:
        if not all(map(is_set, spec.variables())):
            return  # without its keys, a pipeline can still be listed
        try:
            spec.build()
        except (Exception, SystemExit) as error:
            kind = "" if isinstance(error, ValueError | UserError) else f"{type(error).__name__}: "
            problem = redact(f"{spec.cls.__name__} rejects this: {kind}{error}")
            raise self._fault(tree, path, problem) from None

    def _fault(self, tree: Tree, path: _Path, text: str) -> ConfigError:
        where = ".".join(filter(None, (self.owner, _text(path))))
        return ConfigError([tree.fault(f"{where}: {text}")])


def all_picks(most: int) -> Iterator[Pick]:
    """Yields a function for each point, at most `most`; stops after one if there are ranges.

    The caller makes the point of a function before it takes the next one.
    """
    path: list[tuple[int, int]] = []  # number of the picked option and of options, by choice
    for _ in range(most):
        depth, has_range = 0, False

        def pick(_: str, choice: Choice) -> float:
            nonlocal depth, has_range
            has_range = has_range or not isinstance(choice, Options)
            if depth == len(path):
                path.append((0, len(choice.labels) if isinstance(choice, Options) else 1))
            depth += 1
            return path[depth - 1][0]

        yield pick
        if has_range:
            return
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return
        path[-1] = (path[-1][0] + 1, path[-1][1])


def spec_of(text: str, kind: Kind, owner: str) -> Spec:
    """Returns the spec of `NAME` or `{class: NAME, parameter: 1}`, the value of option `owner`."""
    tree = parse(f"{kind.key}: {text}", None).items[kind.key]
    return SpecBuilder(owner).of_class(tree.as_class(), kind)


def _distinct_labels(options: Sequence[Tree]) -> tuple[str, ...]:
    """Returns the labels of options for `tune`, numbered if they are equal."""
    labels = [label_of(option.items.get("class", option).plain()) for option in options]
    counts = Counter(labels)
    return tuple(f"{n}.{x}" if counts[x] > 1 else x for n, x in enumerate(labels))


def _class_names(stages: Sequence[Tree]) -> list[str]:
    """Returns names of swept stages: their classes, numbered if a class is repeated."""
    names = [*map(_class_name, stages)]
    counts = Counter(names)
    return [f"{name}.{n}" if counts[name] > 1 else name for n, name in enumerate(names)]


def _class_name(stage: Tree) -> str:
    if swept := swept_in(stage):
        return _class_name(swept[0])
    name = str(stage.items.get("class", stage).plain())
    return name.rpartition(":")[2].rpartition(".")[2]


def _positions(options: Sequence[Tree]) -> list[str]:
    return [str(position) for position, _ in enumerate(options)]


def _value_labels(options: Sequence[Tree]) -> list[str]:
    return [label_of(option.plain()) for option in options]


def _text(path: _Path) -> str:
    return ".".join(part for part in path if not part.startswith(":"))


def _place(path: _Path) -> str:
    """Returns a path for choices of `tune`, which includes picked options: `retriever:BM25.k`."""
    return ".".join(path).replace(".:", ":")


def label_of(value: JSON) -> str:
    """Returns a value for the name of a point."""
    if isinstance(value, str) and not value.isprintable():
        return json.dumps(value)  # a name must be one line
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _absolute(name: str, tree: Tree) -> str:
    file, colon, attribute = name.rpartition(":")
    return f"{(tree.folder / Path(file).expanduser()).resolve()}:{attribute}" if colon else name


def is_range(tree: Tree) -> bool:
    """Returns whether a tree is `{range: …}`."""
    return "range" in tree.items and set(tree.items) <= {"range", "log"}


def swept_in(tree: Tree) -> Sequence[Tree] | None:
    """Returns the items of `{sweep: […]}`, or None."""
    if set(tree.items) != {"sweep"}:
        return None
    inner = tree.items["sweep"]
    return inner.value if isinstance(inner.value, list) else [inner]


def is_choice(tree: Tree) -> bool:
    """Returns whether a tree is a sweep, a range, or a list, which may be a sweep."""
    return is_range(tree) or swept_in(tree) is not None or isinstance(tree.value, list)
