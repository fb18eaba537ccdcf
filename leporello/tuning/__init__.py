"""The verb `tune`: which of a pipeline's choices are best, and what that is worth elsewhere.

It may touch `config`, `engine` and what measures in `analysis`; it starts no run of its own kind.
Begin with `tune`; `search` proposes points and stops them early, `evaluation` scores them document
by document, `documents` says which are looked at, `estimates` compares over the same ones.
"""

from leporello.tuning.record import Tuned
from leporello.tuning.tune import tune

__all__ = ["Tuned", "tune"]
