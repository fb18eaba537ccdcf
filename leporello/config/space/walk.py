"""A pipeline's trees with what is picked in the place of choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from leporello.config.parameters import Parameter, nested_kind, parameters, takes_list, validate
from leporello.config.sweeps import folder_of, is_range, label_of, swept_in
from leporello.core.environment.classes import ClassError, find_class
from leporello.core.errors import Fault
from leporello.core.protocols import KINDS, Kind
from leporello.core.yaml.tree import Tree

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
class ChoiceWalk:
    """Goes through a pipeline's trees, and puts what is picked in the place of choices."""

    owner: str
    pick: Pick
    chosen: dict[str, float | str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def reduced(self, keys: Mapping[str, Tree]) -> dict[str, Tree]:
        """Returns a pipeline's keys without choices."""
        changed = dict(keys)
        for key in (key for key in KINDS if key in keys):
            changed[key] = self._stage(keys[key], KINDS[key], key)
        if "readers" in keys and keys["readers"].items:
            roles = keys["readers"].items.items()
            own = {n: self._stage(tree, KINDS["reader"], f"readers.{n}") for n, tree in roles}
            changed["readers"] = keys["readers"].with_value({**own})
        return changed

    def _stage(self, tree: Tree, kind: Kind, path: str) -> Tree:
        if is_range(tree):
            return self._fault(tree, path, "a range is of numbers, and here stands a stage")
        if swept := swept_in(tree):
            taken, label = self._one_of(swept, path)
            return self._stage(taken, kind, f"{path}:{label}")
        named = tree.as_class().items.get("class")
        cls = self._found(named, kind) if named else None
        if cls is None:  # whoever makes points tells
            return tree
        known = parameters(cls)
        items = tree.as_class().items.items()
        changed = {n: self._parameter(known[n], c, f"{path}.{n}") for n, c in items if n in known}
        return tree.with_value({**tree.as_class().items, **changed})

    def _parameter(self, parameter: Parameter, tree: Tree, path: str) -> Tree:
        if is_range(tree):
            return self._number(parameter, tree, path)
        kind, swept = nested_kind(parameter.annotation), swept_in(tree)
        if isinstance(tree.value, list) and takes_list(parameter.annotation) is False:
            swept = tree.value
        if swept:
            tree, label = self._one_of(swept, path)
            path = f"{path}:{label}"
        if kind is None:
            return tree
        if isinstance(tree.value, list):
            stages = [self._stage(t, kind, f"{path}.{n}") for n, t in enumerate(tree.value)]
            return tree.with_value([*stages])
        return self._stage(tree, kind, path) if tree.value is not None else tree

    def _one_of(self, options: Sequence[Tree], path: str) -> tuple[Tree, str]:
        labels = list(map(_label, options))
        each = [f"{n}.{x}" if labels.count(x) > 1 else x for n, x in enumerate(labels)]
        number = int(self.pick(path, Options(tuple(each)))) if len(options) > 1 else 0
        if len(options) > 1:
            self.chosen[path] = each[number]
        return options[number], each[number]

    def _number(self, parameter: Parameter, tree: Tree, path: str) -> Tree:
        try:
            choice = _range_of(tree)
        except ValueError as error:
            return self._fault(tree, path, str(error))
        if choice.whole and validate(parameter, tree.with_value(choice.low + 0.5))[1] is None:
            choice = replace(choice, whole=False)  # what takes a half takes any number
        picked = self.pick(path, choice)
        value = int(picked) if choice.whole else _rounded(picked, choice)
        _, problem = validate(parameter, tree.with_value(value))
        if problem:
            return self._fault(tree, path, problem)
        self.chosen[path] = value
        return tree.with_value(value)

    def _found(self, named: Tree, kind: Kind) -> type | None:
        try:
            found: type = find_class(str(named.value), kind, folder_of(named))
        except ClassError:
            return None
        return found

    def _fault(self, tree: Tree, path: str, text: str) -> Tree:
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
