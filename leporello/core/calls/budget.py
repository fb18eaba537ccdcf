"""What answering one question may cost, and what it has cost."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated

from annotated_types import Gt

from leporello.core.protocols import Positive
from leporello.core.records import JSON, Output


@dataclass(frozen=True, slots=True)
class Budget:
    """What the reads of one question may cost, by readers of all roles together; None is no limit.

    What an enricher reads is of the document, and what a judge reads is of the answer: neither
    counts.

    Attributes:
        reads: Number of reads.
        tokens: Tokens read and written.
        dollars: Price in dollars, where readers know prices.
        seconds: Seconds of reading; a read has its share of its window's.
    """

    reads: Positive | None = None
    tokens: Positive | None = None
    dollars: Annotated[float, Gt(0)] | None = None
    seconds: Annotated[float, Gt(0)] | None = None

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) is not None for field in fields(self))

    def row(self) -> dict[str, JSON]:
        """Returns the limits that there are."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


NO_BUDGET = Budget()


@dataclass
class Spending:
    """What the reads of one question have cost.

    Attributes:
        reads: Number of reads.
        tokens: Tokens read and written.
        dollars: Price in dollars.
        seconds: Seconds of reading.
    """

    reads: int = 0
    tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def add(self, output: Output, tokens: int) -> None:
        """Counts a read.

        Args:
            output: What came of it; nothing is counted of one that was over the budget.
            tokens: Tokens of what was read, where the output does not tell.
        """
        if not output.over_budget:
            self.reads += 1
            self.tokens += (output.input_tokens or tokens) + output.output_tokens
            self.dollars += output.dollars or 0.0
            self.seconds += output.seconds or 0.0
