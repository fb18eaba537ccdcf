"""Spending on a server: the ledger of all readers of a model, and the limits of each reader."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from leporello.core.calls.budget import Budget, Ledger
from leporello.core.errors import BudgetSpentError
from leporello.readers.endpoint.responses import Usage

_MILLION = 1_000_000
_DIGITS = 12  # of dollars: a token may cost a hundred-millionth


@dataclass
class SharedLedger:
    """Thread-safe ledger of several readers.

    Attributes:
        spent: Costs of all answered requests.
        closed: Whether a limit was reached, so that later readers start another ledger.
    """

    spent: Ledger = field(default_factory=Ledger)
    closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, cost: Ledger) -> None:
        """Adds the cost of an answered request."""
        with self._lock:
            self.spent += cost


# Readers of the same model on the same server share a ledger as long as any of them exists: this
# includes all points of a sweep, since a run keeps its stages.
_LEDGERS: WeakValueDictionary[tuple[str, str], SharedLedger] = WeakValueDictionary()
_opening = threading.Lock()


def shared_ledger(base_url: str, model: str) -> SharedLedger:
    """Returns the ledger of a model on a server."""
    with _opening:
        ledger = _LEDGERS.get((base_url, model))
        if ledger is None or ledger.closed:
            ledger = _LEDGERS[base_url, model] = SharedLedger()
        return ledger


@dataclass
class ServerAccount:
    """Account of one reader on a server.

    Attributes:
        ledger: Ledger of all readers of its model.
        budget: Limits of the ledger, at which no further input is read.
        input_price: Dollars per million input tokens.
        output_price: Dollars per million output tokens.
        cached_price: Dollars per million input tokens from the server's cache.
    """

    ledger: SharedLedger
    budget: Budget
    input_price: float
    output_price: float
    cached_price: float

    def add(self, usage: Usage) -> None:
        """Adds the cost of an answered request."""
        tokens = usage.input_tokens, usage.output_tokens
        self.ledger.add(Ledger(1, *tokens, self._cost(usage)))

    def check(self) -> None:
        """Checks that the budget allows another input.

        Raises:
            BudgetSpentError: The budget is spent.
        """
        spent = self.ledger.spent
        if name := self.budget.reached(spent):
            self.ledger.closed = True
            limit = self.budget.row()[name]
            price = f", {spent.dollars:.4f} dollars" if self._is_priced else ""
            raise BudgetSpentError(
                f"budget_{name} ({limit:{',' if name == 'tokens' else 'g'}}) is spent:"
                f" {spent.reads:,} answers took {spent.input_tokens:,} input tokens and"
                f" {spent.output_tokens:,} output tokens{price}; all answers are stored: run the"
                " same command again to resume with the same budget"
            )

    def share(self, budget: Budget) -> None:
        """Replaces the limits by a budget for further spending."""
        self.ledger.closed = False
        self.budget = budget.after(self.ledger.spent)

    def price(self, usage: Usage) -> float | None:
        """Returns the dollars of an answer; None without prices."""
        return round(self._cost(usage), _DIGITS) if self._is_priced else None

    @property
    def _is_priced(self) -> bool:
        return bool(self.input_price or self.output_price)

    def _cost(self, usage: Usage) -> float:
        cached = usage.cached_tokens
        read = (usage.input_tokens - cached) * self.input_price + cached * self.cached_price
        return (read + usage.output_tokens * self.output_price) / _MILLION
