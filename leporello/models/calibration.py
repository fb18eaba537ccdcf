"""Calibration: converts scores of readers to probabilities that their answers are correct."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.errors import UserError
from leporello.core.records import Output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# At 30 a probability differs from 1 by 1e-13; infinity would break the fit.
_LARGEST_ODDS = 30.0  # log odds
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic function of slope * score + offset, where a score may be log odds.

    It is temperature scaling with an offset (Platt 1999).
    """

    slope: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.offset)) or self.slope < 0:
            raise ValueError("slope and offset must be numbers, slope >= 0")

    def probability(self, score: float) -> float:
        """Returns the probability that an answer with this score is correct."""
        return 0.5 + 0.5 * math.tanh((self.slope * score + self.offset) / 2)


class TakesCalibration:
    """Base class of readers with a parameter `calibration`."""

    calibration: Path | None

    def check_files(self, data: str) -> None:  # noqa: ARG002 -- calibrations are valid for all data
        """Reads the calibration; see `ChecksFiles`."""
        if self.calibration:
            read_calibration(self.calibration)


def calibrated(outputs: Sequence[Output], file: Path | None) -> list[Output]:
    """Returns outputs with probabilities by a file's calibration; None changes nothing."""
    if file is None:
        return [*outputs]
    calibration, result = read_calibration(file), []
    for output in outputs:
        score = output.score if output.probability is None else odds_of(output.probability)
        probability = None if score is None else calibration.probability(score)
        result.append(replace(output, probability=probability))
    return result


def odds_of(probability: float) -> float:
    """Returns the log odds of a probability, limited to a finite range."""
    if not 0 < probability < 1:
        # A probability of exactly 0 or 1 comes from rounding, and JSON has no infinite odds.
        return math.copysign(_LARGEST_ODDS, probability - 0.5)
    return max(-_LARGEST_ODDS, min(_LARGEST_ODDS, math.log(probability / (1 - probability))))


def read_calibration(path: Path) -> Calibration:
    """Returns the calibration of a JSON file."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return Calibration(float(row["slope"]), float(row["offset"]))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"calibration {path}: {error}; it needs slope and offset: `train PIPELINE --calibrate`"
            " writes such a file"
        ) from None


def fit(scores: Iterable[float], shares: Iterable[float]) -> Calibration:
    """Returns the calibration that fits the scores of answers to their correctness, 0 to 1."""
    import numpy as np

    x, y = np.array([*scores], float), np.array([*shares], float)
    slope, level, mean = fit_logistic(x, y, np.ones(len(x)))
    if slope <= 0:  # the scores are not informative, so use the mean
        # A falling curve would trust the answers that the reader doubts most.
        slope, level = 0.0, odds_of(float(y.mean()))
    return Calibration(round(slope, _DIGITS), round(level - slope * mean, _DIGITS))


def fit_logistic(
    scores: NDArray[np.float64], shares: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Fits a logistic function to shares; returns slope, log odds at the mean score, and mean."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    # Standardised, so that the weak prior acts equally on scores of any scale.
    column = ((scores - mean) / spread)[:, None]
    model = LogisticRegression().fit(  # its weak prior keeps the coefficients finite
        # Each group twice, with weights: scikit-learn takes labels, not shares.
        np.concatenate([column, column]),
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([sizes * shares, sizes * (1 - shares)]),
    )
    return float(model.coef_[0, 0]) / spread, float(model.intercept_[0]), mean
