"""`train:` of a pipeline: how its reader is trained, checked as a stage's parameters are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leporello.config.parameters import setting, settings_of
from leporello.core.errors import Fault, did_you_mean
from leporello.core.training import Training
from leporello.core.yaml.tree import Tree


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings under a name.

    Attributes:
        settings: Values in place of the defaults, by setting.
        by_task: Values in place of these for one task, by its name's last part.
    """

    settings: Mapping[str, Any]
    by_task: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


# Shaham et al. 2022, appendix D. Where paper and code differ, the paper is followed: no weight
# decay (the code's is 0.001), and 10 epochs for QMSum as for all summaries (the code has 20).
_SCROLLS = Preset(
    {
        "epochs": 20.0,
        "learning_rate": (1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4),
        "batch_tokens": 131_072,
        "accumulate": 8,
        "betas": (0.9, 0.98),
        "epsilon": 1e-6,
        "warmup": 0.1,
        "schedule": "linear",
        "precision": "float16",
        "gradient_checkpointing": True,
        "references": "all",
        "best_by": "loss",
    },
    {
        "narrative_qa": {"epochs": 2.0},
        "gov_report": {"epochs": 10.0},
        "summ_screen_fd": {"epochs": 10.0},
        "qmsum": {"epochs": 10.0},
    },
)

# Laban et al. 2021: "the ADAM optimizer, using a learning rate of 1e-5 and a batch-size of 16 …
# selected based on a validation set accuracy". It says neither epochs nor schedule.
_SHUFFLE = Preset(
    {
        "epochs": 10.0,
        "learning_rate": 1e-5,
        "batch_size": 16,
        "schedule": "constant",
        "best_by": "metric",
    }
)

# It says of GPT2-med-ID that it is fine-tuned with a language modelling loss in each domain; the
# rest is ours. Of a file without a split of its own for it, a tenth of the texts is validated on.
_SHUFFLE_DOMAIN = Preset(
    {
        "epochs": 3.0,
        "learning_rate": 5e-5,
        "batch_size": 16,
        "accumulate": 8,
        "schedule": "linear",
        "warmup": 0.1,
        "precision": "float16",
        "gradient_checkpointing": True,
        "holdout": 0.1,
    }
)

# 1,256 characters are few: more passes in smaller steps, all of them, since losses rise again while
# F1 still does. Both classes count the same in the task's F1, whichever is rarer; so it chooses.
_ARCHETYPES: Mapping[str, Any] = {
    "epochs": 10.0,
    "patience": 0,
    "best_by": "metric",
    "validation": "validation",
}
_MULD_TASKS: Mapping[str, Mapping[str, Any]] = {
    "character_id": _ARCHETYPES,
    "opensubtitles": {"holdout": 0.05, "epochs": 1.0},  # MuLD has no validation split of it
    "style_change": {"epochs": 1.0},  # pairs of paragraphs are many, and so are papers
    "arxiv": {"epochs": 1.0},
}

# The paper gives none for either. T5's are Raffel et al.'s for fine-tuning (a constant 1e-3, about
# 128 inputs of 512 tokens a step); Longformer's those of Beltagy et al. for question answering.
_MULD_T5 = Preset(
    {
        "epochs": 5.0,
        "learning_rate": 1e-3,
        "batch_tokens": 65_536,
        "accumulate": 8,
        "schedule": "constant",
        "references": "all",
        "patience": 2,
    },
    {
        **_MULD_TASKS,
        "character_id": {
            **_ARCHETYPES,
            "learning_rate": 3e-4,
            "batch_tokens": 16_384,
            "accumulate": 2,
        },
    },
)
_MULD_LONGFORMER = Preset(
    {
        "epochs": 5.0,
        "learning_rate": 3e-5,
        "batch_size": 32,
        "accumulate": 32,
        "warmup": 0.1,
        "schedule": "linear",
        "precision": "float16",
        "gradient_checkpointing": True,
        "references": "all",
        "patience": 2,
    },
    _MULD_TASKS,
)

PRESETS: Mapping[str, Preset] = {
    "muld-longformer": _MULD_LONGFORMER,
    "muld-t5": _MULD_T5,
    "scrolls": _SCROLLS,
    "shuffle": _SHUFFLE,
    "shuffle-in-domain": _SHUFFLE_DOMAIN,
}


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
    given, faults = settings_of(f"{owner}.train", tree, _setting)
    spec = TrainingSpec(given)
    if not faults:
        try:
            spec.settings("")
        except ValueError as error:
            faults.append(tree.fault(f"{owner}.train: {error}"))
    return spec, faults


def _setting(name: str, tree: Tree) -> tuple[Any, str | None]:
    if set(tree.items) == {"sweep"}:  # --set train.learning_rate=1e-5,2e-5
        if name != "learning_rate":
            return None, "takes one value; only learning_rate takes several"
        tree = tree.items["sweep"]
    value, problem = setting(Training, name, tree)
    if name == "preset" and not problem and value not in PRESETS:
        problem = f"there is no preset {value!r}{did_you_mean(str(value), PRESETS)}"
    return value, problem
