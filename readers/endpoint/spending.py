"""Spending at a server: the ledger of all readers of a model, and the limits of each reader."""

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
    """Ledger of several readers, which have a thread each.

    Attributes:
        spent: Costs of all answered requests.
        closed: Whether a limit was found to be reached: readers made later begin another.
    """

    spent: Ledger = field(default_factory=Ledger)
    closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, cost: Ledger) -> None:
        """Adds the cost of an answered request."""
        with self._lock:
            self.spent += cost


# Readers that ask one model at one server share its ledger as long as any of them lives: all
# points of a sweep, for a run keeps its stages until it ends.
_LEDGERS: WeakValueDictionary[tuple[str, str], SharedLedger] = WeakValueDictionary()
_opening = threading.Lock()


def shared_ledger(base_url: str, model: str) -> SharedLedger:
    """Returns the ledger of a model at a server."""
    with _opening:
        ledger = _LEDGERS.get((base_url, model))
        if ledger is None or ledger.closed:
            ledger = _LEDGERS[base_url, model] = SharedLedger()
        return ledger


@dataclass
class ServerAccount:
    """Account of one reader at a server.

    Attributes:
        ledger: Ledger of all readers of its model there.
        budget: Limits of what the ledger may hold before another input is begun.
        input_price: Dollars for a million tokens read.
        output_price: Dollars for a million tokens written.
        cached_price: Dollars for a million tokens read that the server had kept.
    """

    ledger: SharedLedger
    budget: Budget
    input_price: float
    output_price: float
    cached_price: float

    def add(self, usage: Usage) -> None:
        """Counts an answered request."""
        tokens = usage.input_tokens, usage.output_tokens
        self.ledger.add(Ledger(1, *tokens, self._cost(usage)))

    def check(self) -> None:
        """Allows another input, or not.

        Raises:
            BudgetSpentError: As much is spent as may be.
        """
        spent = self.ledger.spent
        if name := self.budget.reached(spent):
            self.ledger.closed = True
            limit = self.budget.row()[name]
            price = f", {spent.dollars:.4f} dollars" if self._is_priced else ""
            raise BudgetSpentError(
                f"budget_{name} ({limit:{',' if name == 'tokens' else 'g'}}) is spent:"
                f" {spent.reads:,} answers took {spent.input_tokens:,} tokens to read and"
                f" {spent.output_tokens:,} to write{price}; all answers are kept, and the same"
                " command goes on where this one stopped, with as much again"
            )

    def share(self, budget: Budget) -> None:
        """Replaces the limits: so much may be spent in addition to what was spent."""
        self.ledger.closed = False
        self.budget = budget.after(self.ledger.spent)

    def price(self, usage: Usage) -> float | None:
        """Returns the dollars of an answer; None where prices are not known."""
        return round(self._cost(usage), _DIGITS) if self._is_priced else None

    @property
    def _is_priced(self) -> bool:
        return bool(self.input_price or self.output_price)

    def _cost(self, usage: Usage) -> float:
        kept, written = usage.cached_tokens, usage.output_tokens
        read = (usage.input_tokens - kept) * self.input_price + kept * self.cached_price
        return (read + written * self.output_price) / _MILLION
