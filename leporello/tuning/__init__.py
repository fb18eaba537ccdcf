"""The verb `tune`: searches a pipeline's choices, and scores the best point on other documents.

It may import `config`, `engine` and the statistics of `analysis`, and does not start runs. Begin
with `tune`.
"""

from leporello.tuning.tune import Tuned, tune

__all__ = ["Tuned", "tune"]
