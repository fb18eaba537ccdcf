"""The verb `tune`: searches a pipeline's choices, and scores the best point on other documents.

It may import `config`, `engine` and the statistics of `analysis`, and does not start runs. Begin
with `tune`; `search` proposes points and stops them early, `evaluation` scores them document by
document and compares them, `documents` divides the documents.
"""

from leporello.tuning.record import Tuned
from leporello.tuning.tune import tune

__all__ = ["Tuned", "tune"]
