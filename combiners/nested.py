"""A combiner within another."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from leporello.records import JSON, Combination, Example, Hit
from leporello.stages import Combiner

__all__ = ["combined"]


def combined(combiner: Combiner, example: Example, hits: Sequence[Hit]) -> Combination:
    """Runs a combiner to its end, also one that answers at once, and returns what it returns."""
    made: Any = combiner.combine(example, hits)
    if inspect.isgenerator(made):
        made = yield from made
    answer: JSON = made
    return answer
