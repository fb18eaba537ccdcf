"""Calibration: what readers score as probabilities that their answers are right."""

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

_SUREST = 30.0  # log odds
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Calibration:
    """A map from log odds, or other scores, to probabilities; it never falls.

    Attributes:
        slope: Factor of the log odds (Platt 1999: temperature scaling, with an offset).
        offset: Log odds that are added then.
        scores: Ascending scores between which it is linear instead (isotonic regression, Zadrozny
            and Elkan 2002); none for slope and offset.
        probabilities: Probabilities at these scores.
    """

    slope: float = 1.0
    offset: float = 0.0
    scores: tuple[float, ...] = ()
    probabilities: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.slope, self.offset, *self.scores, *self.probabilities)
        if not all(map(math.isfinite, numbers)) or self.slope < 0:
            raise ValueError("slope, offset, scores and probabilities are numbers, slope from 0")
        if len(self.scores) != len(self.probabilities):
            raise ValueError("each of the scores has one of the probabilities")
        rising = all(a < b for a, b in pairwise(self.scores))
        if not rising or any(a > b for a, b in pairwise((0.0, *self.probabilities, 1.0))):
            raise ValueError("scores ascend; probabilities, from 0 to 1, do not fall")

    def probability(self, score: float) -> float:
        """Returns the probability that an answer of this score is right."""
        if not self.scores:
            return 0.5 + 0.5 * math.tanh((self.slope * score + self.offset) / 2)
        place = bisect_right(self.scores, score)
        if place in (0, len(self.scores)):
            return self.probabilities[max(place - 1, 0)]
        (x, end), (y, top) = (n[place - 1 : place + 1] for n in (self.scores, self.probabilities))
        return y + (top - y) * (score - x) / (end - x)

    @classmethod
    def from_row(cls, row: Any) -> Calibration:  # noqa: ANN401 -- any JSON
        """Returns what `row` made.

        Raises:
            ValueError: It is none; TypeError too.
        """
        if not isinstance(row, Mapping):
            raise TypeError("it holds no mapping")
        if "slope" in row:
            return cls(float(row["slope"]), float(row.get("offset", 0)))
        if "scores" in row:
            return cls(
                1.0, 0.0, tuple(map(float, row["scores"])), tuple(map(float, row["probabilities"]))
            )
        raise ValueError("it holds neither slope and offset, nor scores and probabilities")

    def row(self) -> dict[str, JSON]:
        """Returns what a file of it holds."""
        if self.scores:
            return {"scores": [*self.scores], "probabilities": [*self.probabilities]}
        return {"slope": self.slope, "offset": self.offset}


class TakesCalibration:
    """Base of the readers with a parameter `calibration`."""

    calibration: Path | None

    def check_files(self, data: str) -> None:  # noqa: ARG002 -- a calibration is of no data's own
        """Reads the calibration; see `ChecksFiles`."""
        if self.calibration:
            read_calibration(self.calibration)


def calibrated(outputs: Sequence[Output], calibration: Calibration | Path | None) -> list[Output]:
    """Returns outputs with probabilities: of their own probability's log odds, or of their score.

    Args:
        outputs: Outputs of a reader.
        calibration: Calibration, or its file; None leaves them as they are.

    Raises:
        UserError: As `read_calibration`.
    """
    if calibration is None:
        return [*outputs]
    if isinstance(calibration, Path):
        calibration = read_calibration(calibration)
    return [
        o
        if (score := signal(o)) is None
        else replace(o, probability=calibration.probability(score))
        for o in outputs
    ]


def signal(output: Output) -> float | None:
    """Returns what a calibration is of: log odds of the output's probability, or its score."""
    if output.probability is None:
        return output.score
    return odds_of(output.probability)


def odds_of(probability: float) -> float:
    """Returns the log odds of a probability, bounded."""
    if not 0 < probability < 1:
        return math.copysign(_SUREST, probability - 0.5)
    return max(-_SUREST, min(_SUREST, math.log(probability / (1 - probability))))


def read_calibration(path: Path) -> Calibration:
    """Returns the calibration of a JSON file.

    Raises:
        UserError: There is no such file, or it holds none.
    """
    try:
        return Calibration.from_row(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"calibration {path}: {error}; `train PIPELINE --calibrate platt` writes such a file"
        ) from None


def fit(method: Method, scores: Iterable[float], shares: Iterable[float]) -> Calibration:
    """Returns the calibration that fits scores of answers to how right they were.

    Args:
        method: `platt` fits two numbers, `isotonic` a curve of steps, for some hundred answers.
        scores: Scores, bounded.
        shares: How right each answer was, 0 to 1.
    """
    import numpy as np

    x, y = np.array([*scores], float), np.array([*shares], float)
    if method == "isotonic":
        from sklearn.isotonic import IsotonicRegression

        least = 1 / (len(x) + 2)  # nothing is sure that so few answers show
        steps = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(x, y)
        pairs = zip(_rounded(steps.X_thresholds_), _rounded(steps.y_thresholds_), strict=True)
        knots = dict(pairs)
        return Calibration(scores=(*knots,), probabilities=(*knots.values(),))
    slope, level, mean = fit_logistic(x, y, np.ones(len(x)))
    if slope <= 0:  # scores say nothing: the mean
        slope, level = 0.0, odds_of(float(y.mean()))
    return Calibration(round(slope, _DIGITS), round(level - slope * mean, _DIGITS))


def fit_logistic(
    scores: NDArray[np.float64], shares: NDArray[np.float64], sizes: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Returns the logistic function that fits shares, 0 to 1, of groups of these sizes.

    Returns:
        Its slope, its log odds at the mean score, and that mean.
    """
    import numpy as np
    from sklearn.linear_model import LogisticRegression

    mean, spread = float(scores.mean()), float(scores.std()) or 1.0
    column = ((scores - mean) / spread)[:, None]
    model = LogisticRegression().fit(  # its weak prior keeps numbers finite
        np.concatenate([column, column]),
        np.repeat([1, 0], len(scores)),
        sample_weight=np.concatenate([sizes * shares, sizes * (1 - shares)]),
    )
    return float(model.coef_[0, 0]) / spread, float(model.intercept_[0]), mean


def _rounded(numbers: Iterable[float]) -> tuple[float, ...]:
    return tuple(round(float(number), _DIGITS) for number in numbers)
