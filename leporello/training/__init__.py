"""Training readers on what their own pipeline feeds them."""

from leporello.training.train import Trained, train

__all__ = ["Trained", "train"]
