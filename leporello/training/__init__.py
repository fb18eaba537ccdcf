"""Readers that learn from what their own pipeline feeds them, or are shown examples of it.

It may touch all rooms down to `runs`, by which it validates. Begin with `train`, which plans, and
`training_run`, which carries the plan out; `few_shot` draws examples for prompts.
"""

from leporello.training.calibrate import FittedCalibration, calibrate
from leporello.training.few_shot import FewShotExamples, few_shot_examples
from leporello.training.train import Trained, train

__all__ = [
    "FewShotExamples",
    "FittedCalibration",
    "Trained",
    "calibrate",
    "few_shot_examples",
    "train",
]
