"""What a pipeline's YAML leaves open, as choices: sweeps and ranges, of which `tune` takes one.

A pipeline is asked for point by point, by a function that decides; so choices within an option
exist only where it is chosen, and no product of all is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from leporello.config.layers import SETTABLE, Override
from leporello.config.parameters import Parameter, nested_kind, parameters, takes_list, validate
from leporello.config.specs import PipelineSpec
from leporello.config.sweeps import folder_of, is_range, label_of, swept_in
from leporello.config.tree import Tree, read_tree
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.errors import ConfigError, Fault, did_you_mean
from leporello.core.protocols import KINDS, Kind

_DIGITS = 4  # of a number that is chosen from a range; more say nothing


@dataclass(frozen=True, slots=True)
class Options:
    """A choice of one of several.

    Attributes:
        labels: Labels of the options, each once.
    """

    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A choice of a number.

    Attributes:
        low: Lowest number.
        high: Highest number.
        log: Whether small numbers are as likely as large ones, by their logarithms.
        whole: Whether it is a whole number.
    """

    low: float
    high: float
    log: bool
    whole: bool


Choice: TypeAlias = Options | NumberRange
# Decides: from the path of a choice, and the choice, to the number of an option, or a number.
Pick: TypeAlias = Callable[[str, Choice], float]


def first(_: str, choice: Choice) -> float:
    """Picks the first option, or the lowest number."""
    return 0 if isinstance(choice, Options) else choice.low


@dataclass
class Space:
    """A pipeline with choices.

    Attributes:
        name: Name of the pipeline.
        keys: Keys of the pipeline, as written.
        make: Function that makes the points of a pipeline of its keys, and tells the faults.
    """

    name: str
    keys: Mapping[str, Tree]
    make: Callable[[Mapping[str, Tree]], tuple[list[PipelineSpec], Sequence[Fault]]]

    def point(self, pick: Pick) -> tuple[PipelineSpec, dict[str, float | str]]:
        """Returns one pipeline, and what was chosen, by path.

        Raises:
            ConfigError: A range is none, or stages refuse what was chosen.
        """
        walk = _Walk(self.name, pick)
        keys = walk.reduced(self.keys)
        points, faults = self.make(keys) if not walk.faults else ([], walk.faults)
        if faults or len(points) != 1:
            raise ConfigError(faults or [Fault(None, 0, f"{self.name}: cannot be tuned")])
        return points[0], walk.chosen

    def reduced(self, pick: Pick) -> tuple[dict[str, Tree], Sequence[Fault]]:
        """Returns the keys without choices, and what is wrong with ranges."""
        walk = _Walk(self.name, pick)
        return walk.reduced(self.keys), walk.faults

    def check(self) -> dict[str, Choice]:
        """Returns all choices by path, after each option was tried beside the first of the others.

        Raises:
            ConfigError: All that is wrong with options.
        """
        choices: dict[str, Choice] = {}
        faults: list[Fault] = []
        waiting: list[Mapping[str, float]] = [{}]
        for taken in waiting:  # which grows: an option may have choices of its own
            known = {*choices}
            with _collected(faults):
                self.point(partial(_taken, taken, choices))
            for path in [path for path in choices if path not in known]:
                choice = choices[path]
                others: Sequence[float] = (
                    range(1, len(choice.labels)) if isinstance(choice, Options) else [choice.high]
                )
                waiting += [{**taken, path: value} for value in others]
        if faults:
            raise ConfigError(faults)
        return choices

    def all_picks(self, most: int) -> Iterator[Pick]:
        """Yields what picks each point in turn, so many at most; nothing where there are ranges."""
        path: list[tuple[int, int]] = []  # the option taken at each choice on the way, of how many
        for _ in range(most):
            depth, endless = 0, False

            def pick(_: str, choice: Choice) -> float:
                nonlocal depth, endless
                endless = endless or not isinstance(choice, Options)
                if depth == len(path):
                    path.append((0, len(choice.labels) if isinstance(choice, Options) else 1))
                depth += 1
                return path[depth - 1][0]

            yield pick
            if endless:
                return
            while path and path[-1][0] + 1 == path[-1][1]:
                path.pop()
            if not path:
                return
            path[-1] = (path[-1][0] + 1, path[-1][1])


def _taken(
    taken: Mapping[str, float], choices: dict[str, Choice], path: str, choice: Choice
) -> float:
    """Picks what is taken, else what is first, and notes the choice."""
    choices.setdefault(path, choice)
    return taken[path] if path in taken else first(path, choice)


@contextmanager
def _collected(faults: list[Fault]) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        faults += error.faults


def is_choice(tree: Tree) -> bool:
    """Says whether a tree is a sweep or a range, or a list, which may be one."""
    return is_range(tree) or swept_in(tree) is not None or isinstance(tree.value, list)


@dataclass
class _Walk:
    """Goes through a pipeline's trees, and puts what is picked in the place of choices."""

    owner: str
    pick: Pick
    chosen: dict[str, float | str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def reduced(self, keys: Mapping[str, Tree]) -> dict[str, Tree]:
        """Returns a pipeline's keys without choices."""
        changed = dict(keys)
        for key in KINDS.keys() & keys.keys():
            changed[key] = self.stage(keys[key], KINDS[key], key)
        if "readers" in keys and keys["readers"].items:
            roles = keys["readers"].items.items()
            own = {n: self.stage(tree, KINDS["reader"], f"readers.{n}") for n, tree in roles}
            changed["readers"] = keys["readers"].with_value({**own})
        return changed

    def stage(self, tree: Tree, kind: Kind, path: str) -> Tree:
        if is_range(tree):
            return self.fault(tree, path, "a range is of numbers, and here stands a stage")
        if swept := swept_in(tree):
            taken, label = self.one_of(swept, path)
            return self.stage(taken, kind, f"{path}:{label}")
        named = tree.as_class().items.get("class")
        cls = self.found(named, kind) if named else None
        if cls is None:  # whoever makes points tells
            return tree
        known = parameters(cls)
        items = tree.as_class().items.items()
        changed = {n: self.parameter(known[n], c, f"{path}.{n}") for n, c in items if n in known}
        return tree.with_value({**tree.as_class().items, **changed})

    def parameter(self, parameter: Parameter, tree: Tree, path: str) -> Tree:
        if is_range(tree):
            return self.number(parameter, tree, path)
        kind, swept = nested_kind(parameter.annotation), swept_in(tree)
        if isinstance(tree.value, list) and takes_list(parameter.annotation) is False:
            swept = tree.value
        if swept:
            tree, label = self.one_of(swept, path)
            path = f"{path}:{label}"
        if kind is None:
            return tree
        if isinstance(tree.value, list):
            stages = [self.stage(t, kind, f"{path}.{n}") for n, t in enumerate(tree.value)]
            return tree.with_value([*stages])
        return self.stage(tree, kind, path) if tree.value is not None else tree

    def one_of(self, options: Sequence[Tree], path: str) -> tuple[Tree, str]:
        labels = list(map(_label, options))
        each = [f"{n}.{x}" if labels.count(x) > 1 else x for n, x in enumerate(labels)]
        number = int(self.pick(path, Options(tuple(each)))) if len(options) > 1 else 0
        if len(options) > 1:
            self.chosen[path] = each[number]
        return options[number], each[number]

    def number(self, parameter: Parameter, tree: Tree, path: str) -> Tree:
        try:
            choice = _range_of(tree)
        except ValueError as error:
            return self.fault(tree, path, str(error))
        if choice.whole and validate(parameter, tree.with_value(choice.low + 0.5))[1] is None:
            choice = replace(choice, whole=False)  # what takes a half takes any number
        picked = self.pick(path, choice)
        value = int(picked) if choice.whole else _rounded(picked, choice)
        _, problem = validate(parameter, tree.with_value(value))
        if problem:
            return self.fault(tree, path, problem)
        self.chosen[path] = value
        return tree.with_value(value)

    def found(self, named: Tree, kind: Kind) -> type | None:
        try:
            found: type = find_class(str(named.value), kind, folder_of(named))
        except ClassError:
            return None
        return found

    def fault(self, tree: Tree, path: str, text: str) -> Tree:
        self.faults.append(tree.fault(f"{self.owner}.{path}: {text}"))
        return tree


def _range_of(tree: Tree) -> NumberRange:
    """Returns a range.

    Raises:
        ValueError: It is none; the text says why.
    """
    ends: Any = tree.items["range"].plain()
    log: Any = tree.items["log"].plain() if "log" in tree.items else False
    of_numbers = isinstance(ends, list) and all(type(e) in (int, float) for e in ends)
    if not of_numbers or len(ends) != 2 or not all(map(math.isfinite, ends)):  # noqa: PLR2004 -- ends
        raise ValueError(f"a range is [LOW, HIGH], two numbers, got {ends!r}")
    if log not in (True, False):
        raise ValueError(f"log must be true or false, got {log!r}")
    if not ends[0] < ends[1]:
        raise ValueError(f"a range begins with its low end, got {ends!r}")
    if log and ends[0] <= 0:
        raise ValueError(f"a range by its logarithm begins above 0, got {ends!r}")
    low, high = ends
    return NumberRange(low, high, bool(log), isinstance(low, int) and isinstance(high, int))


def _rounded(value: float, choice: NumberRange) -> float:
    return min(max(float(f"{value:.{_DIGITS}g}"), float(choice.low)), float(choice.high))


def _label(tree: Tree) -> str:
    """Returns a stage's class, or a value as a person writes it."""
    named = tree.items.get("class")
    return label_of(named.plain() if named else tree.plain())


def space_of(file: Path) -> list[Override]:
    """Returns the choices of a file `PATH: CHOICES` as settings.

    Raises:
        UserError: It cannot be read.
        ConfigError: It is no mapping of paths.
    """
    tree = read_tree(file)
    faults = [] if tree.items else [tree.fault("a space is a mapping: `retriever.k: [2, 4, 8]`")]
    for name, child in tree.items.items():
        if name.partition(".")[0] not in SETTABLE:
            keys = did_you_mean(name.partition(".")[0], SETTABLE)
            faults.append(child.fault(f"{name!r} is no path such as retriever.k{keys}"))
    if faults:
        raise ConfigError(faults)
    return [Override(tuple(name.split(".")), _swept(child)) for name, child in tree.items.items()]


def _swept(tree: Tree) -> Tree:
    """Returns a list as a sweep: in a file of choices it is nothing else."""
    return tree.with_value({"sweep": tree}) if isinstance(tree.value, list) else tree
