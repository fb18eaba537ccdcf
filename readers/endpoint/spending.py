"""What may be spent at a server, and what was."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from weakref import WeakValueDictionary

from leporello.core.errors import BudgetSpentError
from leporello.readers.endpoint.responses import Usage

_MILLION = 1_000_000
_DIGITS = 12  # of dollars: a token may cost a hundred-millionth


@dataclass
class Ledger:
    """What was spent.

    Attributes:
        requests: Number of requests that were answered.
        used: Tokens of these and of their answers.
        closed: Whether a limit was found to be reached: readers made later begin another.
    """

    requests: int = 0
    used: Usage = field(default=Usage(0, 0))
    closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def tokens(self) -> int:
        """Read and written together."""
        return self.used.input_tokens + self.used.output_tokens

    def add(self, usage: Usage) -> None:
        """Writes one answered request down; readers that share the ledger have a thread each."""
        with self._lock:
            self.requests += 1
            self.used += usage


# Readers that ask one model at one server share its ledger as long as any of them lives: all
# points of a sweep, for a run keeps its stages until it ends.
_LEDGERS: WeakValueDictionary[tuple[str, str], Ledger] = WeakValueDictionary()
_opening = threading.Lock()


def shared_ledger(base_url: str, model: str) -> Ledger:
    """Returns the ledger of a model at a server."""
    with _opening:
        ledger = _LEDGERS.get((base_url, model))
        if ledger is None or ledger.closed:
            ledger = _LEDGERS[base_url, model] = Ledger()
        return ledger


@dataclass(frozen=True)
class SpendingLimit:
    """The most that may be spent before another input is begun.

    Attributes:
        tokens: Number of tokens that may be read and written together; None is no limit.
        dollars: Dollars that may be spent; None is no limit.
        input_price: Dollars for a million tokens read.
        output_price: Dollars for a million tokens written.
        cached_price: Dollars for a million tokens read that the server had kept.
    """

    tokens: int | None
    dollars: float | None
    input_price: float
    output_price: float
    cached_price: float

    def __post_init__(self) -> None:
        if self.dollars is not None and not (self.input_price or self.output_price):
            raise ValueError(
                "budget_dollars needs prices: give input_price and output_price, in dollars for a"
                " million tokens"
            )

    def check(self, ledger: Ledger) -> None:
        """Allows another input, or not.

        Raises:
            BudgetSpentError: As much is spent as may be.
        """
        spent = ""
        if self.tokens is not None and ledger.tokens >= self.tokens:
            spent = f"budget_tokens ({self.tokens:,})"
        elif self.dollars is not None and self.cost(ledger.used) >= self.dollars:
            spent = f"budget_dollars ({self.dollars:g})"
        if spent:
            ledger.closed = True
            raise BudgetSpentError(
                f"{spent} is spent: {self._account(ledger)}; all answers are kept, and the same"
                " command goes on where this one stopped, with as much again"
            )

    def share(self, ledger: Ledger, dollars: float | None, tokens: int | None) -> SpendingLimit:
        """Returns the limit of a process that may spend so much beside what it has spent."""
        ledger.closed = False
        return replace(
            self,
            dollars=None if dollars is None else self.cost(ledger.used) + dollars,
            tokens=None if tokens is None else ledger.tokens + tokens,
        )

    def cost(self, used: Usage) -> float:
        """Returns dollars."""
        kept, written = used.cached_tokens, used.output_tokens
        read = (used.input_tokens - kept) * self.input_price + kept * self.cached_price
        return (read + written * self.output_price) / _MILLION

    def price(self, used: Usage) -> float | None:
        """Returns the dollars of an answer; None where prices are not known."""
        is_priced = self.input_price or self.output_price
        return round(self.cost(used), _DIGITS) if is_priced else None

    def _account(self, ledger: Ledger) -> str:
        used, price = ledger.used, self.price(ledger.used)
        return (
            f"{ledger.requests:,} answers took {used.input_tokens:,} tokens to read and"
            f" {used.output_tokens:,} to write"
            + ("" if price is None else f", {price:.4f} dollars")
        )
