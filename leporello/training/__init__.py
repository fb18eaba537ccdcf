"""Training of readers on the inputs of their own pipeline, and few-shot examples of these inputs.

It may import all rooms down to `runs`, which it validates with. Begin with `train`, which plans,
then `training_run`.
"""

from leporello.training.calibrate import FittedCalibration, calibrate
from leporello.training.few_shot import FewShotExamples, few_shot_examples
from leporello.training.train import Trained, train, train_all

__all__ = [
    "FewShotExamples",
    "FittedCalibration",
    "Trained",
    "calibrate",
    "few_shot_examples",
    "train",
    "train_all",
]
