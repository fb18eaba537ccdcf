"""Calibration: converts scores of readers to probabilities that their answers are correct."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from leporello.core.errors import UserError
from leporello.core.records import JSON, Output

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Method = Literal["platt", "isotonic"]

# At 30 a probability differs from 1 by 1e-13; infinity would break the fit.
_LARGEST_ODDS = 30.0  # log odds
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Calibration:
    """A non-decreasing function from log odds, or other scores, to probabilities.

    It is a logistic function of slope * score + offset (Platt 1999: temperature scaling with an
    offset); or linear between ascending scores (isotonic regression, Zadrozny and Elkan 2002), if
    there are any.
    """

    slope: float = 1.0
    offset: float = 0.0
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.slope, self.offset, *self.scores, *self.probabilities)
        if not all(map(math.isfinite, numbers)) or self.slope < 0:
            raise ValueError("slope, offset, scores and probabilities must be numbers, slope >= 0")
        if len(self.scores) != len(self.probabilities):
            raise ValueError("scores and probabilities must have the same length")
        is_ascending = all(a < b for a, b in pairwise(self.scores))
        if not is_ascending or any(a > b for a, b in pairwise((0.0, *self.probabilities, 1.0))):
            raise ValueError("scores must ascend; probabilities, from 0 to 1, must not fall")

    def probability(self, score: float) -> float:
        """Returns the probability that an answer with this score is correct."""
        if not self.scores:
            return 0.5 + 0.5 * math.tanh((self.slope * score + self.offset) / 2)
        place = bisect_right(self.scores, score)
        if place in (0, len(self.scores)):
            return self.probabilities[max(place - 1, 0)]
        (x, end), (y, top) = (n[place - 1 : place + 1] for n in (self.scores, self.probabilities))
        return y + (top - y) * (score - x) / (end - x)

    @classmethod
    def from_row(cls, row: Any) -> Calibration:  # noqa: ANN401 -- any JSON
        """Returns the calibration from a result of `row`; else raises ValueError or TypeError."""
        if not isinstance(row, Mapping):
            raise TypeError("it does not contain a mapping")
        if "slope" in row:
            return cls(float(row["slope"]), float(row.get("offset", 0)))
        if "scores" in row:
            return cls(
                1.0, 0.0, tuple(map(float, row["scores"])), tuple(map(float, row["probabilities"]))
            )
        raise ValueError("it has neither slope and offset, nor scores and probabilities")

    def row(self) -> dict[str, JSON]:
        """Returns the calibration as JSON for a file."""
        if self.scores:
            return {"scores": [*self.scores], "probabilities": [*self.probabilities]}
        return {"slope": self.slope, "offset": self.offset}


class TakesCalibration:
    """Base class of readers with a parameter `calibration`."""

    calibration: Path | None

    def check_files(self, data: str) -> None:  # noqa: ARG002 -- calibrations are valid for all data
        """Reads the calibration; see `ChecksFiles`."""
        if self.calibration:
            read_calibration(self.calibration)


def calibrated(outputs: Sequence[Output], calibration: Calibration | Path | None) -> list[Output]:
    """Returns outputs with probabilities of a calibration or its file; None changes nothing."""
    if calibration is None:
        return [*outputs]
    if isinstance(calibration, Path):
        calibration = read_calibration(calibration)
    return [
        output
        if (score := signal(output)) is None
        else replace(output, probability=calibration.probability(score))
        for output in outputs
    ]


def signal(output: Output) -> float | None:
    """Returns the input of a calibration: the log odds of an output's probability, or its score."""
    if output.probability is None:
        return output.score
    return odds_of(output.probability)


def odds_of(probability: float) -> float:
    """Returns the log odds of a probability, limited to a finite range."""
    if not 0 < probability < 1:
        # A probability of exactly 0 or 1 comes from rounding, and JSON has no infinite odds.
        return math.copysign(_LARGEST_ODDS, probability - 0.5)
    return max(-_LARGEST_ODDS, min(_LARGEST_ODDS, math.log(probability / (1 - probability))))


def read_calibration(path: Path) -> Calibration:
    """Returns the calibration of a JSON file."""
    try:
        return Calibration.from_row(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"calibration {path}: {error}; `train PIPELINE --calibrate platt` writes such a file"
        ) from None


def fit(method: Method, scores: Iterable[float], shares: Iterable[float]) -> Calibration:
    """Returns the calibration that fits the scores of answers to their correctness, 0 to 1.

    `platt` fits two numbers; `isotonic` fits a step function and needs some hundred answers.
    """
    import numpy as np

    x, y = np.array([*scores], float), np.array([*shares], float)
    if method == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        margin = 1 / (len(x) + 2)  # few answers cannot justify a probability near 0 or 1
        steps = IsotonicRegression(y_min=margin, y_max=1 - margin, out_of_bounds="clip").fit(x, y)
        pairs = zip(_rounded(steps.X_thresholds_), _rounded(steps.y_thresholds_), strict=True)
        # A dict, since rounding can make two scores equal, and scores must ascend.
        knots = dict(pairs)
        return Calibration(scores=(*knots,), probabilities=(*knots.values(),))
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


def _rounded(numbers: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(number), _DIGITS) for number in numbers)
