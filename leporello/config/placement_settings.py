"""`placement:` of a pipeline: where it runs, with what the command line says laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leporello.config.parameters import parameters, validate
from leporello.config.placement import Placement, kept_under, problems_of
from leporello.core.errors import ConfigError, Fault, did_you_mean
from leporello.core.yaml.tree import Tree, check_settings

# A list in a file; what `--set placement.workers=1,2` comes to.
_SWEPT = "takes one value: where a run works is no part of what it is, so it is not swept"


@dataclass(frozen=True)
class PlacementSpec:
    """What `placement:` says.

    Attributes:
        given: Values that are written, by setting, checked.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def under(self, flags: PlacementSpec, owner: str) -> Placement:
        """Returns the placement: what the flags say, else this, else the defaults.

        Args:
            flags: Placement on the command line.
            owner: The pipeline, for messages.

        Raises:
            ConfigError: They contradict each other.
        """
        values = {**kept_under(self.given, flags.given.get("executor")), **flags.given}
        if problems := problems_of(values):
            texts = (f"{owner}.placement.{name}: {text}" for name, text in problems.items())
            raise ConfigError([Fault(None, 0, text) for text in texts])
        return Placement(**values)


def placement_flags(given: Mapping[str, Any]) -> PlacementSpec:
    """Checks what the command line says of the placement.

    Args:
        given: Values by setting; None leaves what the pipeline says.

    Raises:
        ConfigError: A value that means nothing.
    """
    trees = {n: Tree(value, None, 0) for n, value in given.items() if value is not None}
    checked = {name: _setting(name, tree) for name, tree in trees.items()}
    problems = [f"placement.{name}: {problem}" for name, (_, problem) in checked.items() if problem]
    if problems:
        raise ConfigError([Fault(None, 0, text) for text in problems])
    return PlacementSpec({name: value for name, (value, _) in checked.items()})


def check_placement(owner: str, tree: Tree) -> tuple[PlacementSpec, list[Fault]]:
    """Checks what a pipeline says under `placement`.

    Args:
        owner: The pipeline, for messages.
        tree: A mapping of settings.

    Returns:
        What it says, and all that is wrong with it.
    """
    given, faults = check_settings(f"{owner}.placement", tree, _setting)
    if not faults:
        faults = [
            tree.items[name].fault(f"{owner}.placement.{name}: {text}")
            for name, text in problems_of(given).items()
        ]
    return PlacementSpec(given), faults


def _setting(name: str, tree: Tree) -> tuple[Any, str | None]:
    settings = parameters(Placement)
    if isinstance(tree.value, list) or name == "sweep" or "sweep" in tree.items:
        return None, _SWEPT
    if name not in settings:
        return None, f"there is no such setting{did_you_mean(name, settings)}"
    return validate(settings[name], tree)
