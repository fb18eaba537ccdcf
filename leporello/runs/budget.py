"""What a run may spend at a server, dealt out over its workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from leporello.config import Pipeline
from leporello.core.errors import BudgetSpentError
from leporello.core.protocols import SharesLimits
from leporello.executors.interface import SharedLimits

_LEAST = 0.01  # of the budget: what is left below that is not dealt out again


@dataclass
class RunBudgets:
    """What the readers of a run may spend, by role; only those stand here that share limits.

    Attributes:
        by_role: Budgets by role.
    """

    by_role: Mapping[str, RunBudget] = field(default_factory=dict)

    @classmethod
    def of(cls, stages: Pipeline, workers: int) -> RunBudgets:
        """Returns the budgets of a pipeline's readers, for so many workers."""
        sharing = {r: one for r, one in stages.readers.items() if isinstance(one, SharesLimits)}
        return cls({role: RunBudget(workers, *one.budget) for role, one in sharing.items()})

    def share(self) -> dict[str, SharedLimits]:
        """Returns what one worker may spend of what is left."""
        return {role: budget.share() for role, budget in self.by_role.items()}

    def spend(self, spent: Mapping[str, tuple[float, int]]) -> None:
        """Counts what a worker has spent."""
        for role, (dollars, tokens) in spent.items():
            self.by_role[role].spend(dollars, tokens)

    def check(self, message: str) -> None:
        """Looks whether anything is left to deal out, once a worker has spent its share.

        Raises:
            BudgetSpentError: Nothing is of one; with the message of the worker.
        """
        for budget in self.by_role.values():
            budget.check(message)


@dataclass
class RunBudget:
    """A budget of dollars, of tokens, of both, or of none.

    Attributes:
        workers: Number of workers that share it.
        dollars: Dollars that may be spent; None is no limit.
        tokens: Tokens that may be spent; None is no limit.
        spent_dollars: Dollars that were spent.
        spent_tokens: Tokens that were spent.
    """

    workers: int
    dollars: float | None = None
    tokens: int | None = None
    spent_dollars: float = 0.0
    spent_tokens: int = 0

    def share(self) -> SharedLimits:
        """Returns what one worker may spend of what is left.

        Shares of all workers together are never more than what is left.
        """
        dollars, tokens = self._left
        return SharedLimits(
            self.workers,
            None if dollars is None else max(0.0, dollars / self.workers),
            None if tokens is None else max(0, tokens // self.workers),
        )

    def spend(self, dollars: float, tokens: int) -> None:
        """Counts what a worker has spent."""
        self.spent_dollars += dollars
        self.spent_tokens += tokens

    def check(self, message: str) -> None:
        """Looks whether anything is left to deal out, once a worker has spent its share.

        Raises:
            BudgetSpentError: Nothing is; with the message of the worker.
        """
        dollars, tokens = self._left
        spent = [
            left <= _LEAST * whole
            for left, whole in ((dollars, self.dollars), (tokens, self.tokens))
            if left is not None and whole is not None
        ]
        if self.workers <= 1 or any(spent):
            raise BudgetSpentError(message)

    @property
    def _left(self) -> tuple[float | None, int | None]:
        """Dollars and tokens that are left; None is no limit."""
        dollars = None if self.dollars is None else self.dollars - self.spent_dollars
        return dollars, None if self.tokens is None else self.tokens - self.spent_tokens
