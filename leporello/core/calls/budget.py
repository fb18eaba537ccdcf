"""Budgets and ledgers: what may be spent, what was spent, and what is left for whom."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from annotated_types import Gt

_COUNTS = ("reads", "tokens")  # limits that are whole numbers
_MOST = 99  # hundredths of a shared budget: once they are spent, workers get no new shares


@dataclass(frozen=True, slots=True)
class Ledger:
    """Costs: those of one read, or all that was spent.

    Attributes:
        reads: Number of reads.
        input_tokens: Number of tokens read.
        output_tokens: Number of tokens written.
        dollars: Price in dollars.
        seconds: Seconds of work.
    """

    reads: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, more: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) + getattr(more, f.name) for f in fields(self)))

    def __sub__(self, earlier: Ledger) -> Ledger:
        return Ledger(*(getattr(self, f.name) - getattr(earlier, f.name) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of what may be spent; None is no limit.

    A pipeline's budget limits the reads of one question, by readers of all roles together. Reads of
    enrichers belong to the document, and reads of judges to the answer: neither counts.

    Attributes:
        reads: Number of reads.
        tokens: Tokens read and written.
        dollars: Price in dollars, where readers know prices.
        seconds: Seconds of reading; a read has its share of its window's.
    """

    reads: Annotated[int, Gt(0)] | None = None
    tokens: Annotated[int, Gt(0)] | None = None
    dollars: Annotated[float, Gt(0)] | None = None
    seconds: Annotated[float, Gt(0)] | None = None

    def __bool__(self) -> bool:
        return bool(self.row())

    def __str__(self) -> str:
        return ", ".join(f"{limit:g} {name}" for name, limit in self.row().items())

    def row(self) -> dict[str, Any]:
        """Returns the limits that there are."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def is_exceeded(self, spent: Ledger) -> bool:
        """Whether more was spent than a limit allows."""
        return any(getattr(spent, name) > limit for name, limit in self.row().items())

    def reached(self, spent: Ledger) -> str:
        """Returns the name of the first limit that is reached; empty if none is."""
        limits = self.row().items()
        return next((name for name, limit in limits if getattr(spent, name) >= limit), "")

    def after(self, spent: Ledger) -> Budget:
        """Returns the limits of everything, where this budget begins after what was spent."""
        return Budget(**{n: getattr(spent, n) + limit for n, limit in self.row().items()})

    def left(self, spent: Ledger) -> Budget:
        """Returns what is left of each limit, 0 where it is reached."""
        return Budget(**{n: max(0, limit - getattr(spent, n)) for n, limit in self.row().items()})

    def part(self, parts: int, taken: int = 1) -> Budget:
        """Returns so many of equal parts; whole numbers stay whole."""
        return Budget(
            **{
                name: limit * taken // parts if name in _COUNTS else limit * taken / parts
                for name, limit in self.row().items()
            }
        )


NO_BUDGET = Budget()


@dataclass
class SharedBudget:
    """Budget that the workers of a run share.

    Attributes:
        budget: Limits of all workers together.
        workers: Number of workers.
        spent: Spending that the workers have reported.
    """

    budget: Budget
    workers: int
    spent: Ledger = field(default_factory=Ledger)

    @property
    def share(self) -> Budget:
        """What one worker may spend; all shares together are never more than what is left."""
        return self.budget.left(self.spent).part(self.workers)

    @property
    def is_spent(self) -> bool:
        """Whether a worker that has spent its share gets no other one."""
        nearly_all = self.budget.part(100, _MOST)
        has_share = all(self.share.row().values())
        return self.workers <= 1 or not has_share or bool(nearly_all.reached(self.spent))
