"""What a run may spend at a server, dealt out over its workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leporello.core.errors import BudgetSpentError
from leporello.core.protocols import SharesLimits
from leporello.executors.interface import SharedLimits

_LEAST = 0.01  # of the budget: what is left below that is not dealt out again


@dataclass
class RunBudget:
    """A budget of dollars, of tokens, of both, or of none.

    Attributes:
        workers: Number of workers that share it; 0 where the reader has no limits to share.
        dollars: Dollars that may be spent; None is no limit.
        tokens: Tokens that may be spent; None is no limit.
        spent_dollars: Dollars that were spent.
        spent_tokens: Tokens that were spent.
    """

    workers: int = 0
    dollars: float | None = None
    tokens: int | None = None
    spent_dollars: float = 0.0
    spent_tokens: int = 0

    @classmethod
    def of(cls, reader: Any, workers: int) -> RunBudget:  # noqa: ANN401 -- a stage
        """Returns the budget of a reader, for so many workers."""
        if not isinstance(reader, SharesLimits):
            return cls()
        dollars, tokens = reader.budget
        return cls(workers, dollars, tokens)

    def share(self) -> SharedLimits | None:
        """Returns what one worker may spend of what is left; None where there is nothing to share.

        Shares of all workers together are never more than what is left.
        """
        if not self.workers:
            return None
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
