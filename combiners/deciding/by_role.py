"""A combiner whose reads go to a reader of another role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.core.calls.contracts import in_role, run_combiner
from leporello.core.protocols import Combiner, Count, Role
from leporello.core.records import Combination, Example, Hit


@dataclass(frozen=True)
class ByRole:
    """Runs another combiner; where it names no role, the reader of this one reads.

    Attributes:
        combiner: Combiner that is run.
        role: Role of the reader.
        hits: Number of the best hits that it gets; 0 is all.
    """

    combiner: Combiner
    role: Role
    hits: Count = 0

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds."""
        best = hits[: self.hits or None]
        return (yield from in_role(self.role, run_combiner(self.combiner, example, best)))
