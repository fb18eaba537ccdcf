"""Training readers on what their own pipeline feeds them, or showing them examples of it."""

from leporello.training.train import Trained, train
from leporello.training.worked import Worked, worked_examples

__all__ = ["Trained", "Worked", "train", "worked_examples"]
