"""`train:` of a pipeline: how its reader is trained, checked as a stage's parameters are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leporello.config.parameters import parameters, validate
from leporello.config.training_presets import PRESETS, Preset
from leporello.core.errors import Fault, did_you_mean
from leporello.core.training import Training
from leporello.core.yaml.tree import Tree, check_settings


@dataclass(frozen=True)
class TrainingSpec:
    """What `train:` says.

    Attributes:
        given: Values that are written, by setting, checked.
    """

    given: Mapping[str, Any] = field(default_factory=dict)

    def settings(self, task: str) -> Training:
        """Returns the settings for a task: those given, the preset's, the defaults.

        A share that is given as `holdout` stands in place of a preset's split.

        Raises:
            ValueError: They contradict each other.
        """
        preset = PRESETS.get(self.given.get("preset", ""), Preset({}))
        values = {**preset.settings, **preset.by_task.get(task.rpartition("/")[2], {})}
        if self.given.get("holdout"):
            values.pop("validation", None)
        return Training(**{**values, **self.given})


def check_training(owner: str, tree: Tree) -> tuple[TrainingSpec, list[Fault]]:
    """Checks what a pipeline says under `train`.

    Args:
        owner: The pipeline, for messages.
        tree: A mapping of settings.

    Returns:
        What it says, and all that is wrong with it.
    """
    given, faults = check_settings(f"{owner}.train", tree, _setting)
    spec = TrainingSpec(given)
    if not faults:
        try:
            spec.settings("")
        except ValueError as error:
            faults.append(tree.fault(f"{owner}.train: {error}"))
    return spec, faults


def _setting(name: str, tree: Tree) -> tuple[Any, str | None]:
    settings = parameters(Training)
    if name not in settings:
        return None, f"there is no such setting{did_you_mean(name, settings)}"
    if set(tree.items) == {"sweep"}:  # --set train.learning_rate=1e-5,2e-5
        if settings[name].name != "learning_rate":
            return None, "takes one value; only learning_rate takes several"
        tree = tree.items["sweep"]
    value, problem = validate(settings[name], tree)
    if name == "preset" and not problem and value not in PRESETS:
        problem = f"there is no preset {value!r}{did_you_mean(str(value), PRESETS)}"
    return value, problem
