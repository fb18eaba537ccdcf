"""How much likelier one of two choices is, by what a reader scores them."""

from __future__ import annotations

import math
from collections.abc import Sequence


def logarithms(scores: Sequence[float]) -> list[float]:
    """Returns log-probabilities of what are either these or probabilities, which some reader gives.

    Raises:
        ValueError: They are neither.
    """
    if max(scores) <= 0:
        return [*scores]
    if min(scores) < 0 or max(scores) > 1:
        raise ValueError(
            f"scores of choices must be probabilities or their logarithms, got {[*scores]}"
        )
    return [math.log(score) if score else -math.inf for score in scores]


def log_odds(scores: Sequence[float]) -> float:
    """Returns the log odds of the first choice against the second; 0 where they are as likely.

    Raises:
        ValueError: As `logarithms`.
    """
    first, second = logarithms(scores)[:2]
    return 0.0 if first == second else first - second


def logistic(log_odds: float) -> float:
    """Returns the probability that these log odds are."""
    return 0.5 + 0.5 * math.tanh(log_odds / 2)


def log_probabilities(log_odds: float) -> tuple[float, float]:
    """Returns those of two choices, by the log odds of the first; none overflows."""
    first, second = (
        -max(odds, 0.0) - math.log1p(math.exp(-abs(odds))) for odds in (-log_odds, log_odds)
    )
    return first, second
