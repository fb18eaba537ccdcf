"""Turns the tree of a stage into specs: one, or one per combination of swept values."""

import itertools
import json
import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from leporello.config.built_in import is_built_in
from leporello.config.classes import fault_of_class
from leporello.config.parameters import (
    Parameter,
    fault_of_key,
    nested_kind,
    parameters,
    takes_list,
    validate,
)
from leporello.config.space import Options, Pick, first, range_of
from leporello.config.specs import Spec
from leporello.core.annotations import BACKEND_MARK, ROLE_MARK, marked
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.environment.input_limits import POINTS
from leporello.core.errors import ConfigError, Fault, UserError, did_you_mean
from leporello.core.protocols import BACKEND, Kind
from leporello.core.records import JSON
from leporello.core.secrets import is_set, redact
from leporello.core.yaml.tree import Tree, parse

# Pairs (path, value) that together name one point of a sweep, such as ("retriever.k", "5").
Labels: TypeAlias = tuple[tuple[str, str], ...]
_Options: TypeAlias = list[tuple[Labels, Any]]
# Path in a pipeline; a part with a leading colon is the label of an option that was picked above.
_Path: TypeAlias = tuple[str, ...]


@dataclass
class SweepPoints:
    """Turns trees into specs, and collects every fault."""

    owner: str  # pipeline or task of the trees; every fault begins with it
    roles: Collection[str] | None = None  # roles that readers have; None allows any role
    faults: list[Fault] = field(default_factory=list)
    pick: Pick | None = None  # picks one value for each choice; None makes a point of every value
    # Whether to use the lowest number of a range, as in a pipeline that is not run.
    ranges: bool = False
    made: int = 0  # number of stages and points so far

    def of_stage(self, tree: Tree, kind: Kind, *path: str) -> list[tuple[Labels, Spec]]:
        """Returns the specs of a stage, or of each stage of a sweep; empty if it is faulty."""
        if is_range(tree):
            self._fault(tree, path, "a stage cannot be a range, which is only for numbers")
            return []
        if (swept := swept_in(tree)) is not None:
            if not swept:
                self._fault(tree, path, "a sweep needs at least one value")
            if swept and self.pick:
                tree, label = self._picked(swept, path)
                return self.of_stage(tree, kind, *path, label)
            groups = [self.of_stage(item, kind, *path) for item in swept]
            names = _distinct([group[0][1] if group else None for group in groups])
            return [
                (((_text(path), name), *labels), spec)
                for name, group in zip(names, groups, strict=True)
                for labels, spec in group
            ]
        mapping = tree.as_class()
        if not isinstance(mapping.value, dict):
            problem = (
                f"a stage is a NAME, or a mapping such as {{class: NAME}}, got {tree.plain()!r}"
            )
            self._fault(tree, path, problem)
            return []
        return self.of_class(mapping, kind, *path)

    def _picked(self, options: Sequence[Tree], path: _Path) -> tuple[Tree, str]:
        """Returns the picked option, and the part that it adds to the path."""
        labels = [label_of(o.items.get("class", o).plain()) for o in options]
        distinct = [f"{n}.{x}" if labels.count(x) > 1 else x for n, x in enumerate(labels)]
        assert self.pick
        several = len(options) > 1
        number = int(self.pick(_place(path), Options(tuple(distinct)))) if several else 0
        return options[number], f":{distinct[number]}"

    def of_class(self, tree: Tree, kind: Kind, *path: str) -> list[tuple[Labels, Spec]]:
        """Returns the specs of a mapping with `class`; several if parameters are swept."""
        cls = self._find(tree, kind, path)
        if cls is None:
            return []
        before = len(self.faults)
        options = self._parameters(tree, cls, path)
        if len(self.faults) > before:
            return []
        name = _absolute(str(tree.items["class"].plain()), tree.items["class"])
        places = {key: (child.file, child.line) for key, child in tree.items.items()}
        specs = [
            (labels, Spec(name, cls, dict(zip(options, values, strict=True)), places))
            for labels, values in self.combined(tree, [*options.values()], *path)
        ]
        return [option for option in specs if self._can_build(option[1], tree, path)]

    def _find(self, tree: Tree, kind: Kind, path: _Path) -> type | None:
        entry = tree.items.get("class")
        if entry is None or not isinstance(entry.value, str):
            self._fault(entry or tree, path, "needs `class: NAME`")
            return None
        try:
            # Plug-ins must not replace the classes of built-in files.
            cls = find_class(entry.value, kind, entry.folder, ours=is_built_in(entry.file))
        except ClassError as error:
            self._fault(entry, (*path, "class"), str(error))
            return None
        problem = fault_of_class(cls, kind)
        if problem:
            self._fault(entry, (*path, "class"), problem)
        return None if problem else cls

    def _parameters(self, tree: Tree, cls: type, path: _Path) -> dict[str, _Options]:
        allowed = parameters(cls)
        options = {}
        for name, child in tree.items.items():
            if name == "class":
                continue
            if name not in allowed:
                moved = "; since 0.3 it is a key of pipelines, false by default"
                hint = moved if name == "normalised" else did_you_mean(name, allowed)
                problem = f"{cls.__name__} has no parameter {name!r}{hint}"
                self._fault(child, (*path, name), problem)
            elif fault := fault_of_key(allowed[name], child.plain()):  # other faults repeat the key
                self._fault(child, (*path, name), fault)
            else:
                options[name] = self._options(allowed[name], child, (*path, name))
        missing = [p for p in allowed.values() if p.required and p.name not in tree.items]
        for parameter in missing:
            self._fault(tree, path, f"{cls.__name__} needs the parameter {parameter}")
        for parameter in allowed.values():
            is_given = parameter.required or parameter.name in tree.items
            if not is_given and (fault := fault_of_key(parameter, parameter.default)):
                problem = f"the default in {cls.__name__}: {fault}"
                self._fault(tree, (*path, parameter.name), problem)
        return options

    def _options(self, parameter: Parameter, tree: Tree, path: _Path) -> _Options:
        kind = nested_kind(parameter.annotation)
        if is_range(tree):
            return self._number(parameter, tree, path)
        if (swept := swept_in(tree)) is not None:
            return self._swept_options(parameter, swept, tree, path)
        if not isinstance(tree.value, list):
            return self._one(parameter, tree, path, kind)
        listed = takes_list(parameter.annotation)
        if listed is None:
            self._fault(
                tree,
                path,
                "takes a list or a single value, so a list is ambiguous;"
                f" write {{sweep: {tree.plain()}}} to sweep",
            )
            return []
        if listed:
            return self._one(parameter, tree, path, kind)
        return self._swept_options(parameter, tree.value, tree, path)

    def _number(self, parameter: Parameter, tree: Tree, path: _Path) -> _Options:
        pick = self.pick or (first if self.ranges else None)
        if pick is None:
            problem = "only `tune` allows a range; give one value, or several as {sweep: […]}"
            self._fault(tree, path, problem)
            return []
        try:
            choice = range_of(tree)
        except ValueError as error:
            self._fault(tree, path, str(error))
            return []
        if choice.whole and validate(parameter, tree.with_value(choice.low + 0.5))[1] is None:
            choice = replace(choice, whole=False)  # the parameter is not an integer
        number = choice.value(pick(_place(path), choice))
        return self._one(parameter, tree.with_value(number), path, None)

    def _one(self, parameter: Parameter, tree: Tree, path: _Path, kind: Kind | None) -> _Options:
        if kind is None:
            value, problem = validate(parameter, tree)
            problem = problem or self._fault_of_name(parameter, value)
            if problem:
                self._fault(tree, path, problem)
            return [((), value)]
        if tree.value is None and parameter.default is None:  # run.yaml includes such defaults
            return [((), None)]
        if not isinstance(tree.value, list):
            if takes_list(parameter.annotation) and swept_in(tree) is None:
                self._fault(tree, path, f"needs a list of {kind.key}s, got {tree.plain()!r}")
                return []
            return list(self.of_stage(tree, kind, *path))
        items = [
            self.of_stage(item, kind, *path, str(position))
            for position, item in enumerate(tree.value)
        ]
        return self.combined(tree, items, *path)

    def combined(
        self, tree: Tree, options: Sequence[_Options], *path: str
    ) -> list[tuple[Labels, tuple[Any, ...]]]:
        """Returns every combination of options; empty if sweeps would make too many."""
        count = math.prod(map(len, options))
        is_reported, self.made = self.made > POINTS, self.made + count
        if self.made > POINTS:
            text = (
                f"sweeps make {count:,} combinations here, and a pipeline may have at most"
                f" {POINTS:,}: sweep fewer values, split the pipeline, or let `tune` choose"
            )
            if not is_reported:
                self._fault(tree, path, text)
            return []
        return [_combine(choice) for choice in itertools.product(*options)]

    def _fault_of_name(self, parameter: Parameter, value: object) -> str | None:
        """Returns the fault of the name of a backend or a role, or None."""
        if marked(parameter.annotation, BACKEND_MARK):  # the constructor would report it last
            try:
                find_class(str(value), BACKEND, Path())
            except ClassError as error:
                return str(error)
        if self.roles is None or not marked(parameter.annotation, ROLE_MARK):
            return None
        used = value if isinstance(value, (tuple, list)) else (value,)
        unknown = [role for role in used if role and role not in self.roles]
        if not unknown:
            return None
        hint = did_you_mean(str(unknown[0]), self.roles)
        return f"no reader has the role {unknown[0]!r}{hint}"

    def _swept_options(
        self, parameter: Parameter, items: Sequence[Tree], tree: Tree, path: _Path
    ) -> _Options:
        if not items:
            self._fault(tree, path, "a sweep needs at least one value")
        kind = nested_kind(parameter.annotation)
        if kind is not None and not takes_list(parameter.annotation):
            return list(
                self.of_stage(tree.with_value({"sweep": tree.with_value([*items])}), kind, *path)
            )
        if items and self.pick:
            item, label = self._picked(items, path)
            return self._one(parameter, item, (*path, label), kind)
        options: _Options = []
        for position, item in enumerate(items):
            label = str(position) if kind else label_of(item.plain())
            for labels, value in self._one(parameter, item, path, kind):
                options.append((((_text(path), label), *labels), value))
        return options

    def _can_build(self, spec: Spec, tree: Tree, path: _Path) -> bool:
        if not all(map(is_set, spec.variables())):
            return True  # without its keys, a pipeline can still be listed
        try:
            spec.build()
        except (Exception, SystemExit) as error:
            kind = "" if isinstance(error, ValueError | UserError) else f"{type(error).__name__}: "
            problem = redact(f"{spec.cls.__name__} rejects this: {kind}{error}")
            self._fault(tree, path, problem)
            return False
        return True

    def _fault(self, tree: Tree, path: _Path, text: str) -> None:
        where = ".".join(filter(None, (self.owner, _text(path))))
        self.faults.append(tree.fault(f"{where}: {text}"))


def spec_of(text: str, kind: Kind, owner: str) -> Spec:
    """Returns the spec of `NAME` or `{class: NAME, parameter: 1}`, the value of option `owner`."""
    points = SweepPoints(owner)
    tree = parse(f"{kind.key}: {text}", None).items[kind.key]
    options = points.of_class(tree.as_class(), kind)
    if faults := points.faults or [tree.fault(f"{owner}: cannot be swept")] * (len(options) != 1):
        raise ConfigError(faults)
    return options[0][1]


def _combine(choice: Iterable[tuple[Labels, Any]]) -> tuple[Labels, tuple[Any, ...]]:
    pairs = list(choice)
    return tuple(label for labels, _ in pairs for label in labels), tuple(v for _, v in pairs)


def _distinct(specs: Sequence[Spec | None]) -> list[str]:
    """Returns names of swept stages: their classes, numbered if a class is repeated."""
    names = [spec.cls.__name__ if spec else "" for spec in specs]
    return [
        f"{name}.{position}" if names.count(name) > 1 else name
        for position, name in enumerate(names)
    ]


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
