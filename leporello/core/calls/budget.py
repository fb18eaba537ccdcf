"""Budgets, ledgers of spending, and the shares of workers."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from annotated_types import Gt

_COUNTS = ("reads", "tokens")  # integer limits
_NEARLY_ALL = 99  # percent of a shared budget, after which workers get no new shares


@dataclass(frozen=True, slots=True)
class Ledger:
    """Costs of one read, or of many: counts, the price in dollars, and seconds of work."""

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
    """Spending limits; None means no limit.

    A pipeline's budget limits the reads of one question, by readers of all roles together. The
    reads of enrichers do not count because the questions of a document share them, and those of
    judges do not count because they only score the answer.

    Attributes:
        reads: Number of reads.
        tokens: Tokens read and written.
        dollars: Price in dollars, if readers know their prices.
        seconds: Seconds of reading; the time of a batch is divided among its reads.
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
        """Returns the limits that are set."""
        limits = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def is_exceeded(self, spent: Ledger) -> bool:
        """Whether more was spent than a limit allows."""
        return any(getattr(spent, name) > limit for name, limit in self.row().items())

    def reached(self, spent: Ledger) -> str:
        """Returns the name of the first limit that is reached, or an empty text."""
        limits = self.row().items()
        return next((name for name, limit in limits if getattr(spent, name) >= limit), "")

    def after(self, spent: Ledger) -> Budget:
        """Returns limits of total spending that allow this budget in addition to `spent`."""
        return Budget(**{n: getattr(spent, n) + limit for n, limit in self.row().items()})

    def left(self, spent: Ledger) -> Budget:
        """Returns the remainder of each limit, 0 if the limit is reached."""
        return Budget(**{n: max(0, limit - getattr(spent, n)) for n, limit in self.row().items()})

    def part(self, parts: int, taken: int = 1) -> Budget:
        """Returns `taken` of `parts` equal parts; integer limits stay integers."""
        return Budget(
            **{
                # Rounded down, so that all shares together never exceed the budget.
                name: limit * taken // parts if name in _COUNTS else limit * taken / parts
                for name, limit in self.row().items()
            }
        )


NO_BUDGET = Budget()


@dataclass
class SharedBudget:
    """Budget that the workers of a run share, and the spending that they have reported."""

    budget: Budget
    workers: int
    spent: Ledger = field(default_factory=Ledger)

    @property
    def share(self) -> Budget:
        """Budget of one worker; all shares together never exceed the remaining budget."""
        # Workers spend at the same time, so only shares keep the sum within the limit.
        return self.budget.left(self.spent).part(self.workers)

    @property
    def is_spent(self) -> bool:
        """Whether a worker that has spent its share gets no further share."""
        nearly_all = self.budget.part(100, _NEARLY_ALL)
        has_share = all(self.share.row().values())
        return self.workers <= 1 or not has_share or bool(nearly_all.reached(self.spent))
