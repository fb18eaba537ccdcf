"""Account of a search: its budget, as given by `--budget`, and its costs so far."""

import logging
import math
import re
import time
from dataclasses import dataclass, field

from leporello.core.calls.budget import Budget, Ledger
from leporello.core.errors import Stopped, UserError

_log = logging.getLogger("leporello")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)")
_DOLLARS = re.compile(r"\$\s*(\d+(?:\.\d+)?)")
_POINTS = re.compile(r"(\d{1,18})\s*runs?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def parse_budget(text: str) -> tuple[Budget, int | None]:
    """Returns the limits and number of points in `30m`, `$2`, `200 runs`; else raises UserError."""
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
        raise UserError(f"--budget {text!r} is too small for one point: it must be more than 0")
    return budget, points


@dataclass
class Account:
    """Spending of a search over all its processes; several searches divide the budget."""

    text: str  # budget as the user wrote it
    budget: Budget  # limits of seconds or dollars
    points: int | None = None  # maximum number of points to score; None is unlimited
    search: int = 1  # number of the search, from 1
    searches: int = 1  # number of searches that divide the budget
    reserve: Ledger = field(default_factory=Ledger)  # costs of the work after the search
    is_priced: bool = True  # whether all readers report prices
    _paid: Ledger = field(default_factory=Ledger)
    _began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> Ledger:
        """Costs so far, including those of earlier processes."""
        return self._paid + Ledger(seconds=time.monotonic() - self._began)

    @property
    def is_spent(self) -> bool:
        """Whether time or dollars are spent; raises UserError for dollars without prices."""
        if self.budget.dollars is not None and not self.is_priced:
            raise UserError(
                f"--budget {self.text!r}: the reader does not report prices, so dollars cannot"
                " limit the search: give a time or a number of points (30m, 200 runs)"
            )
        allowed = self.budget.part(self.searches, self.search)
        return bool(allowed.reached(self.spent + self.reserve))

    def check(self) -> None:
        """Raises Stopped, which ends work in progress, once time or dollars are spent."""
        if self.is_spent:
            raise Stopped("the budget is spent")

    def points_left(self, scored: int) -> int | None:
        """Returns how many points this search may score, after `scored` of earlier searches."""
        if self.points is None:
            return None
        return self.points * self.search // self.searches - scored

    def pay(self, dollars: float | None, seconds: float) -> None:
        """Adds the price of reads, and the seconds of reads of earlier processes."""
        self.is_priced = self.is_priced and dollars is not None
        self._paid += Ledger(dollars=dollars or 0.0, seconds=seconds)

    def check_enough(self, seconds: float) -> None:
        """Raises UserError, with the smallest budget, if a search of such a length has no room."""
        limit, needed = self.budget.seconds, math.ceil(seconds * self.searches)
        several = f", as {self.searches} searches share the budget" if self.searches > 1 else ""
        if self.points is not None and self.points < self.searches:
            needed_text = f"{self.searches} runs"
        elif limit is not None and limit < needed:
            needed_text = f"about {needed}s"
        else:
            if limit is not None:
                _log.info("the search needs at least about %d s%s", needed, several)
            return
        raise UserError(
            f"--budget {self.text!r} is too small for one point: the search needs at least"
            f" {needed_text}{several}; increase it, or use fewer examples with --limit"
        )
