"""How long a search may go on: seconds, dollars, or points."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Literal

from leporello.core.errors import Stopped, UserError

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_DOLLARS = re.compile(r"\$\s*(\d+(?:\.\d+)?)")
_RUNS = re.compile(r"(\d+)\s*runs?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """What a search may spend.

    Attributes:
        text: The budget as it was written.
        amount: Number of its units.
        unit: Unit: seconds of work, dollars of reads, or points.
    """

    text: str
    amount: float
    unit: Literal["seconds", "dollars", "runs"]

    @classmethod
    def parse(cls, text: str) -> SearchBudget:
        """Returns what a text says: `30m`, `$2`, `200 runs`.

        Raises:
            UserError: It says none of these, or nothing above 0.
        """
        plain = text.strip().lower()
        budget = None
        if match := _TIME.fullmatch(plain):
            budget = cls(text, float(match[1]) * _SECONDS[match[2]], "seconds")
        elif match := _DOLLARS.fullmatch(plain):
            budget = cls(text, float(match[1]), "dollars")
        elif match := _RUNS.fullmatch(plain):
            budget = cls(text, float(match[1]), "runs")
        if budget is None:
            raise UserError(
                f"--budget {text!r}: must be a time, dollars or points: 30m, $2, 200 runs"
            )
        if not budget.amount:
            raise UserError(f"--budget {text!r} is too small for one point: give more than nothing")
        return budget


@dataclass
class Account:
    """What was spent of a budget, by earlier processes too.

    Attributes:
        budget: The budget.
        share: Share of it that may be spent by now, 0 to 1.
        reserve: Seconds or dollars that must be left for what follows the search.
        dollars: Dollars of all reads so far; None where a reader knows no prices.
        runs: Points so far.
        earlier: Seconds that earlier processes worked.
    """

    budget: SearchBudget
    share: float = 1.0
    reserve: float = 0.0
    dollars: float | None = 0.0
    runs: int = 0
    earlier: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds of work, also of earlier processes."""
        return self.earlier + time.monotonic() - self._began

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be begun.

        Raises:
            UserError: The budget is in dollars, and the reader knows no prices.
        """
        allowed = self.budget.amount * self.share
        if self.budget.unit == "runs":
            return self.runs + 1 > allowed
        if self.budget.unit == "seconds":
            return self.seconds + self.reserve >= allowed
        if self.dollars is None:
            raise UserError(
                f"--budget {self.budget.text!r}: the reader knows no prices, so nothing would end"
                " it: give a time, or a number of points (30m, 200 runs)"
            )
        return self.dollars + self.reserve >= allowed

    def since(self, seconds: float, dollars: float) -> float:
        """Returns what was spent, in the budget's unit, since so much had been; 0 of points."""
        if self.budget.unit == "runs":
            return 0.0
        spent = self.seconds - seconds, (self.dollars or 0.0) - dollars
        return spent[self.budget.unit == "dollars"]

    def check(self) -> None:
        """Ends work under way once time or dollars are spent.

        Raises:
            Stopped: They are.
        """
        if self.budget.unit != "runs" and self.is_spent:
            raise Stopped("the budget is spent")

    def too_small(self, what: str, documents: int, seconds: float) -> UserError:
        """Returns why a search cannot be: what was not scored on how many documents, after when."""
        divided = (
            "; documents are few, so that several searches divide it" if self.share < 1 else ""
        )
        return UserError(
            f"--budget {self.budget.text!r} is too small for one point: {what} not scored on"
            f" {documents} documents after {seconds:.0f} s{divided}; give more, or take fewer"
            " examples with --limit: the same command goes on from here"
        )

    def pay(self, dollars: float | None, seconds: float) -> None:
        """Counts what reads cost, and the seconds of those of earlier processes."""
        known = self.dollars is not None and dollars is not None
        self.dollars = (self.dollars or 0.0) + (dollars or 0.0) if known else None
        self.earlier += seconds
