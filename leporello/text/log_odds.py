"""Log odds and probabilities of two choices, by the scores that a reader gives them."""

import math
from collections.abc import Sequence


def log_odds(scores: Sequence[float]) -> float:
    """Returns the log odds of the first choice against the second; 0 if they are equally likely.

    Raises ValueError if the scores are neither probabilities nor log-probabilities.
    """
    # Log-probabilities are never positive, so the sign shows the kind of scores.
    if max(scores) > 0:
        if min(scores) < 0 or max(scores) > 1:
            raise ValueError(
                f"scores of choices must be probabilities or their logarithms, got {[*scores]}"
            )
        scores = [math.log(score) if score else -math.inf for score in scores]
    first, second = scores[:2]
    # Two infinite values are equal too, and their difference would be NaN.
    return 0.0 if first == second else first - second


def logistic(log_odds: float) -> float:
    """Converts log odds to a probability."""
    # The same as 1 / (1 + exp(-x)), without overflow for large values.
    return 0.5 + 0.5 * math.tanh(log_odds / 2)


def log_probabilities(log_odds: float) -> tuple[float, float]:
    """Returns log-probabilities of two choices by the log odds of the first, without overflow."""
    first, second = (
        -max(odds, 0.0) - math.log1p(math.exp(-abs(odds))) for odds in (-log_odds, log_odds)
    )
    return first, second
