"""Choices of a pipeline: its sweeps and ranges in YAML, and the points that result from picks.

Choices within an option exist only if that option is picked.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from leporello.config.specs import PipelineSpec
from leporello.core.errors import ConfigError, Fault
from leporello.core.yaml.tree import Tree

_DIGITS = 4  # significant digits of a number that is chosen from a range


@dataclass(frozen=True, slots=True)
class Options:
    """A choice between several options, which have distinct labels."""

    labels: tuple[str, ...]

    def value(self, picked: float) -> str:
        """Returns the label of the option with this number."""
        return self.labels[int(picked)]


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A choice of a number; `log` searches its logarithm evenly, `is_integer` only integers."""

    low: float
    high: float
    log: bool
    is_integer: bool

    def value(self, picked: float) -> float:
        """Returns the number to use: an integer, or rounded and within the range."""
        if self.is_integer:
            return int(picked)
        return min(max(float(f"{picked:.{_DIGITS}g}"), float(self.low)), float(self.high))


Choice: TypeAlias = Options | NumberRange
# Function from the path of a choice, and the choice, to an option's number or a number in a range.
Pick: TypeAlias = Callable[[str, Choice], float]


def first(_: str, choice: Choice) -> float:
    """Picks the first option, or the lowest number."""
    return 0 if isinstance(choice, Options) else choice.low


def range_of(tree: Tree) -> NumberRange:
    """Returns a range; raises ValueError with the reason if it is not valid."""
    ends: Any = tree.items["range"].plain()
    log: Any = tree.items["log"].plain() if "log" in tree.items else False
    of_numbers = isinstance(ends, list) and all(type(e) in (int, float) for e in ends)
    if not of_numbers or len(ends) != 2 or not all(map(math.isfinite, ends)):  # noqa: PLR2004 -- ends
        raise ValueError(f"a range is [LOW, HIGH], two numbers, got {ends!r}")
    if log not in (True, False):
        raise ValueError(f"log must be true or false, got {log!r}")
    if not ends[0] < ends[1]:
        raise ValueError(f"a range must begin with its low end, got {ends!r}")
    if log and ends[0] <= 0:
        raise ValueError(f"a logarithmic range must begin above 0, got {ends!r}")
    low, high = ends
    return NumberRange(low, high, bool(log), isinstance(low, int) and isinstance(high, int))


@dataclass
class Space:
    """A pipeline with choices; `make` returns the point of the picks, or raises ConfigError."""

    name: str
    make: Callable[[Pick], PipelineSpec]

    def point(self, pick: Pick) -> tuple[PipelineSpec, dict[str, float | str]]:
        """Returns one pipeline, and the chosen values by path."""
        chosen: dict[str, float | str] = {}

        def recording_pick(path: str, choice: Choice) -> float:
            picked = pick(path, choice)
            chosen[path] = choice.value(picked)
            return picked

        return self.make(recording_pick), chosen

    def check(self) -> dict[str, Choice]:
        """Returns all choices by path, after trying each option with the first ones elsewhere."""
        choices: dict[str, Choice] = {}
        faults: list[Fault] = []
        waiting: list[Mapping[str, float]] = [{}]
        for picked in waiting:  # grows during the loop, as an option may have nested choices
            known_paths = {*choices}
            try:
                self.point(partial(_pick_and_record, picked, choices))
            except ConfigError as error:
                faults += error.faults
            for path in [path for path in choices if path not in known_paths]:
                choice = choices[path]
                others: Sequence[float] = (
                    range(1, len(choice.labels)) if isinstance(choice, Options) else [choice.high]
                )
                waiting += [{**picked, path: value} for value in others]
        if faults:
            raise ConfigError(faults)
        return choices


def _pick_and_record(
    picked: Mapping[str, float], choices: dict[str, Choice], path: str, choice: Choice
) -> float:
    choices.setdefault(path, choice)
    return picked[path] if path in picked else first(path, choice)
