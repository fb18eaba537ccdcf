"""Checks the training settings of a pipeline, `train:`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from leporello.config.parameters import setting, settings_of
from leporello.core.errors import ConfigError, no_such
from leporello.core.training import Training
from leporello.core.yaml.tree import Tree, read_tree


@cache
def _presets() -> Tree:
    """Returns the presets by name; each may have settings for single tasks in `tasks`."""
    return read_tree(Path(__file__).with_name("presets.yaml"))


@dataclass(frozen=True)
class TrainingSpec:
    """Checked settings of `train:`; `given` has the values of those that are set."""

    given: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, task: str) -> Training:
        """Returns the settings for a task, completed by the preset and the defaults.

        A `holdout` replaces the validation split of a preset. Contradictions are a ValueError.
        """
        preset = _presets().at(self.given.get("preset", ""))
        of_task = preset.at("tasks", task.rpartition("/")[2])
        trees = {n: tree for n, tree in {**preset.items, **of_task.items}.items() if n != "tasks"}
        if self.given.get("holdout"):
            trees.pop("validation", None)
        values = {name: setting(Training, name, tree) for name, tree in trees.items()}
        return Training(**{**values, **self.given})


def check_training(path: str, tree: Tree) -> TrainingSpec:
    """Returns the checked `train` of a pipeline; raises ConfigError."""
    spec = TrainingSpec(settings_of(path, tree, _setting))
    try:
        spec.settings("")
    except ValueError as error:
        raise ConfigError([tree.fault(f"{path}: {error}")]) from None
    return spec


def _setting(name: str, tree: Tree) -> Any:  # noqa: ANN401 -- of any setting
    if set(tree.items) == {"sweep"}:  # --set train.learning_rate=1e-5,2e-5
        if name != "learning_rate":
            raise ValueError("takes one value; only learning_rate may be swept")
        tree = tree.items["sweep"]
    value = setting(Training, name, tree)
    if name == "preset" and value not in _presets().items:
        raise ValueError(no_such("preset", str(value), _presets().items))
    return value
