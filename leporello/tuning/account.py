"""Account of a search: its budget as `--budget` gives it, and what the search has spent."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from leporello.core.calls.budget import Budget, Ledger
from leporello.core.errors import Stopped, UserError

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_DOLLARS = re.compile(r"\$\s*(\d+(?:\.\d+)?)")
_POINTS = re.compile(r"(\d{1,18})\s*runs?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> tuple[Budget, int | None]:
    """Returns the limits in a text and its number of points: `30m`, `$2`, `200 runs`.

    Raises:
        UserError: The text has another form, or a limit of 0.
    """
    plain, points = text.strip().lower(), None
    if match := _TIME.fullmatch(plain):
        budget = Budget(seconds=float(match[1]) * _SECONDS[match[2]])
    elif match := _DOLLARS.fullmatch(plain):
        budget = Budget(dollars=float(match[1]))
    elif match := _POINTS.fullmatch(plain):
        budget, points = Budget(), int(match[1])
    else:
        raise UserError(f"--budget {text!r}: must be a time, dollars or points: 30m, $2, 200 runs")
    if not all(budget.row().values()) or points == 0:
        raise UserError(f"--budget {text!r} is too small for one point: give more than nothing")
    return budget, points


@dataclass
class Account:
    """Spending of a search and of the earlier processes that worked at it.

    Several searches may divide the budget: each may spend so far that the later ones have theirs.

    Attributes:
        text: Budget as it was written.
        budget: Limits of seconds or dollars.
        points: Number of points that may be scored; None is no limit.
        search: Number of the search, from 1.
        searches: Number of searches that divide the budget.
        reserve: Costs of what follows the search.
        is_priced: Whether all readers know prices.
    """

    text: str
    budget: Budget
    points: int | None = None
    search: int = 1
    searches: int = 1
    reserve: Ledger = field(default_factory=Ledger)
    is_priced: bool = True
    _paid: Ledger = field(default_factory=Ledger)
    _began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> Ledger:
        """Costs so far, also of earlier processes."""
        return self._paid + Ledger(seconds=time.monotonic() - self._began)

    @property
    def is_spent(self) -> bool:
        """Whether no time or no dollars are left for another point.

        Raises:
            UserError: The budget is in dollars, and the reader knows no prices.
        """
        if self.budget.dollars is not None and not self.is_priced:
            raise UserError(
                f"--budget {self.text!r}: the reader knows no prices, so nothing would end"
                " it: give a time, or a number of points (30m, 200 runs)"
            )
        allowed = self.budget.part(self.searches, self.search)
        return bool(allowed.reached(self.spent + self.reserve))

    def check(self) -> None:
        """Ends work under way once time or dollars are spent.

        Raises:
            Stopped: They are.
        """
        if self.is_spent:
            raise Stopped("the budget is spent")

    def points_left(self, scored: int) -> int | None:
        """Returns how many points this search may score, after so many of earlier searches."""
        if self.points is None:
            return None
        return self.points * self.search // self.searches - scored

    def pay(self, dollars: float | None, seconds: float) -> None:
        """Counts what reads cost, and the seconds of those of earlier processes."""
        self.is_priced = self.is_priced and dollars is not None
        self._paid += Ledger(dollars=dollars or 0.0, seconds=seconds)

    def too_small(self, what: str, documents: int, seconds: float) -> UserError:
        """Returns why a search cannot be: what was not scored on how many documents, after when."""
        divided = (
            "; documents are few, so that several searches divide it"
            if self.search < self.searches
            else ""
        )
        return UserError(
            f"--budget {self.text!r} is too small for one point: {what} not scored on"
            f" {documents} documents after {seconds:.0f} s{divided}; give more, or take fewer"
            " examples with --limit: the same command goes on from here"
        )
