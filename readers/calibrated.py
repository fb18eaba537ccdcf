"""Two choices as likely as percentages of whole documents teach: another reader, corrected."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from leporello.core.calls import contracts
from leporello.core.errors import UserError
from leporello.core.protocols import Batching, NonNegative, Reader
from leporello.core.records import JSON, Output, Read
from leporello.models.calibration import fit_logistic
from leporello.text.log_odds import log_odds, log_probabilities

_PERCENTAGE = re.compile(r"\s*(\d{1,3}(?:\.\d+)?)\s*%\s*")
_WHOLE = 100
_SUREST = 30.0  # log odds


@dataclass(frozen=True)
class Calibrated:
    """Says what another reader says to two choices, its log odds moved and stretched.

    Both numbers can be learnt from percentages alone, without a label of any single input: inputs
    with one percentage are a group, and the logistic function of a group's mean log odds is fitted
    to it (Platt scaling, of groups). That is how `Percentage` with `share: pooled` puts them
    together again. What is learnt stands in the config; there is no model.

    Attributes:
        reader: Reader that scores choices: by log-probabilities or probabilities.
        offset: Log odds of the first choice against the second that are taken off.
        slope: Factor that they are multiplied by then.
    """

    reader: Reader
    offset: float = 0.0
    slope: NonNegative = 1.0

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; scores are log-probabilities."""
        weighed = zip(inputs, self._log_odds(inputs), strict=True)
        return [self._correct(read, output, odds) for read, (output, odds) in weighed]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the other reader's tokens of each text."""
        return self.reader.count(texts)

    def render(self, read: Read) -> str:
        """Returns the exact text that the other reader is given."""
        return str(self._inner.render(read))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the other reader's window."""
        return int(self._inner.fit(read))

    @property
    def batching(self) -> Batching | None:
        """How the other reader packs micro-batches; None if it packs none."""
        return contracts.batching_of(self.reader)

    @property
    def depends_on_batch(self) -> bool:
        """Whether the other reader's answers depend on batch mates."""
        return bool(getattr(self.reader, "depends_on_batch", True))

    @property
    def schedules_itself(self) -> bool:
        """Whether the other reader wants all that wait in one call."""
        return bool(getattr(self.reader, "schedules_itself", False))

    def learn(
        self,
        inputs: Sequence[Read],
        targets: Sequence[str],
        directory: Path,  # noqa: ARG002 -- two numbers need no file
    ) -> Mapping[str, JSON]:
        """Fits offset and slope to percentages of groups of inputs.

        Returns:
            Both.

        Raises:
            UserError: Targets that are no percentages, or from which nothing can be learnt.
        """
        shares = list(map(_share, targets))
        if len(set(shares)) < 2:  # noqa: PLR2004 -- a line
            raise UserError(
                "Calibrated needs inputs of two percentages at least, and got"
                f" {len(targets)} of {targets[0] if targets else 'none'}: train on more"
            )
        # One group a percentage: which input is of which document is not known (decision 22).
        groups: defaultdict[float, list[float]] = defaultdict(list)
        for (_, odds), share in zip(self._log_odds(inputs), shares, strict=True):
            groups[share].append(odds)
        offset, slope = _fit(groups)
        return {"offset": round(offset, 6), "slope": round(slope, 6)}

    @property
    def _inner(self) -> Any:  # noqa: ANN401 -- its window is no part of what every reader has
        return self.reader

    def _log_odds(self, inputs: Sequence[Read]) -> list[tuple[Output, float]]:
        """Returns the other reader's outputs, each with its log odds."""
        if any(len(read.choices) != 2 for read in inputs):  # noqa: PLR2004 -- a pair
            raise ValueError("Calibrated weighs two choices against each other: give it two")
        outputs = self.reader.read(inputs)
        if any(len(output.scores) != 2 for output in outputs):  # noqa: PLR2004 -- as above
            raise ValueError(
                f"Calibrated needs a reader that scores choices; {type(self.reader).__name__} only"
                " writes"
            )
        return [(output, _bounded(log_odds(output.scores))) for output in outputs]

    def _correct(self, read: Read, output: Output, odds: float) -> Output:
        odds = self.slope * (odds - self.offset)
        scores = log_probabilities(odds)
        text = read.choices[scores.index(max(scores))]
        best = max(scores)
        likely = math.exp(best)
        return replace(output, text=text, scores=scores, score=best, probability=likely)


def _fit(groups: Mapping[float, Sequence[float]]) -> tuple[float, float]:
    """Returns the offset and slope at which groups' mean log odds come nearest to their shares.

    Raises:
        UserError: Shares do not rise with log odds.
    """
    import numpy as np

    means = np.array([fmean(odds) for odds in groups.values()])
    sizes = np.array([len(odds) for odds in groups.values()], float)
    slope, level, mean = fit_logistic(means, np.array([*groups]), sizes)
    if slope <= 0:
        raise UserError(
            "Calibrated cannot learn: the reader's scores do not rise with the percentages. Are the"
            " combiner's positive and negative the wrong way round, or what it asks unclear?"
        )
    return mean - level / slope, slope


def _share(target: str) -> float:
    match = _PERCENTAGE.fullmatch(target)
    if not match or float(match[1]) > _WHOLE:
        raise UserError(
            "Calibrated learns from percentages such as 57%, and the combiner wants"
            f" {target!r:.60}: combine with Percentage, on a task whose answers are percentages"
        )
    return float(match[1]) / _WHOLE


def _bounded(odds: float) -> float:
    """Returns log odds that can be reckoned with: a probability of 1 may be a rounded one."""
    return min(max(odds, -_SUREST), _SUREST)
