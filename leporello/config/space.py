"""Choices that YAML leaves open, sweeps and ranges, and the points that come of deciding each.

So choices within an option exist only where it is chosen, and no product of all is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from leporello.config.layers import SETTABLE, Override
from leporello.config.specs import PipelineSpec
from leporello.core.errors import ConfigError, Fault, did_you_mean
from leporello.core.yaml.tree import Tree, read_tree

_DIGITS = 4  # of a number that is chosen from a range; more say nothing


@dataclass(frozen=True, slots=True)
class Options:
    """A choice of one of several.

    Attributes:
        labels: Labels of the options, each once.
    """

    labels: tuple[str, ...]

    def value(self, picked: float) -> str:
        """Returns the label of the option of this number."""
        return self.labels[int(picked)]


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

    def value(self, picked: float) -> float:
        """Returns a number as it is used: whole, or rounded and between the ends."""
        if self.whole:
            return int(picked)
        return min(max(float(f"{picked:.{_DIGITS}g}"), float(self.low)), float(self.high))


Choice: TypeAlias = Options | NumberRange
# Decides: from the path of a choice, and the choice, to the number of an option, or a number.
Pick: TypeAlias = Callable[[str, Choice], float]


def first(_: str, choice: Choice) -> float:
    """Picks the first option, or the lowest number."""
    return 0 if isinstance(choice, Options) else choice.low


def range_of(tree: Tree) -> NumberRange:
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


@dataclass
class Space:
    """A pipeline with choices.

    Attributes:
        name: Name of the pipeline.
        make: Function that makes the point of a decision, and returns the faults too.
    """

    name: str
    make: Callable[[Pick], tuple[list[PipelineSpec], Sequence[Fault]]]

    def point(self, pick: Pick) -> tuple[PipelineSpec, dict[str, float | str]]:
        """Returns one pipeline, and what was chosen, by path.

        Raises:
            ConfigError: A range is none, or stages refuse what was chosen.
        """
        chosen: dict[str, float | str] = {}

        def noted(path: str, choice: Choice) -> float:
            picked = pick(path, choice)
            chosen[path] = choice.value(picked)
            return picked

        points, faults = self.make(noted)
        if faults or len(points) != 1:
            raise ConfigError(faults or [Fault(None, 0, f"{self.name}: cannot be tuned")])
        return points[0], chosen

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
            try:
                self.point(partial(_taken, taken, choices))
            except ConfigError as error:
                faults += error.faults
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
    lists = {name: child for name, child in tree.items.items() if isinstance(child.value, list)}
    swept = {name: child.with_value({"sweep": child}) for name, child in lists.items()}
    return [Override((*name.split("."),), child) for name, child in (tree.items | swept).items()]
