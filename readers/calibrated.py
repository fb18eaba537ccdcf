"""Reader that calibrates another reader's choices by percentages of complete documents."""

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
_PERCENT = 100
# Far beyond real scores (about 2), so that it changes only probabilities of exactly 0 or 1.
_MAX_LOG_ODDS = 30.0


@dataclass(frozen=True)
class Calibrated:
    """Chooses as another reader does between two choices, after a shift and scaling of log odds.

    `train` learns both numbers from percentages of documents, without labels of inputs: inputs with
    the same percentage form a group, and the logistic function of their mean log odds is fitted to
    the percentage (Platt scaling of groups). `Percentage` with `share: pooled` computes percentages
    in the same way. The config contains both numbers; no model is stored.

    Attributes:
        reader: Reader that scores choices by log-probabilities or probabilities.
        offset: Number that is subtracted from the log odds of the first choice.
        slope: Factor by which the difference is multiplied.
    """

    reader: Reader
    offset: float = 0.0
    # Never negative: a reader whose scores fall with the percentage has swapped choices.
    slope: NonNegative = 1.0

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input, in order; scores are log-probabilities."""
        pairs = zip(inputs, self._log_odds(inputs), strict=True)
        return [self._correct(read, output, odds) for read, (output, odds) in pairs]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, as the inner reader counts them."""
        return self.reader.count(texts)

    def render(self, read: Read) -> str:
        """Returns the exact text that the inner reader receives."""
        return str(self._inner.render(read))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit the inner reader's input window."""
        return int(self._inner.fit(read))

    @property
    def batching(self) -> Batching | None:
        """Micro-batches of the inner reader; None if it does not use any."""
        return contracts.batching_of(self.reader)

    @property
    def depends_on_batch(self) -> bool:
        """Whether the inner reader's answers depend on the other inputs of a batch."""
        # True if unknown: such answers are not cached, which is slower but never wrong.
        return bool(getattr(self.reader, "depends_on_batch", True))

    @property
    def schedules_itself(self) -> bool:
        """Whether the inner reader takes all waiting inputs in one call."""
        return bool(getattr(self.reader, "schedules_itself", False))

    # Two numbers learn from eleven documents; hundreds of weights cannot (decision 22).
    def learn(
        self,
        inputs: Sequence[Read],
        targets: Sequence[str],
        directory: Path,  # noqa: ARG002 -- two numbers need no file
    ) -> Mapping[str, JSON]:
        """Fits offset and slope to percentages of groups of inputs, and returns them.

        Raises UserError unless targets are percentages that differ and rise with the scores.
        """
        shares = list(map(_share, targets))
        if len(set(shares)) < 2:  # noqa: PLR2004 -- two points define a line
            raise UserError(
                "Calibrated needs inputs with at least two different percentages, but got"
                f" {len(targets)} with {targets[0] if targets else 'none'}: train on more examples"
            )
        # Groups are by percentage, since inputs do not name their document (decision 22).
        groups: defaultdict[float, list[float]] = defaultdict(list)
        for (_, odds), share in zip(self._log_odds(inputs), shares, strict=True):
            groups[share].append(odds)
        offset, slope = _fit(groups)
        # Rounded, so that the config is equal on machines whose last digits differ.
        return {"offset": round(offset, 6), "slope": round(slope, 6)}

    @property
    def _inner(self) -> Any:  # noqa: ANN401 -- not every reader has an input window
        return self.reader

    def _log_odds(self, inputs: Sequence[Read]) -> list[tuple[Output, float]]:
        if any(len(read.choices) != 2 for read in inputs):  # noqa: PLR2004 -- a pair
            raise ValueError("Calibrated compares two choices: use a combiner that gives two")
        outputs = self.reader.read(inputs)
        if any(len(output.scores) != 2 for output in outputs):  # noqa: PLR2004 -- as above
            raise ValueError(
                "Calibrated needs a reader that scores choices, which"
                f" {type(self.reader).__name__} does not"
            )
        # Finite, since probabilities may be rounded to 0 or 1.
        most = _MAX_LOG_ODDS
        return [(output, min(max(log_odds(output.scores), -most), most)) for output in outputs]

    def _correct(self, read: Read, output: Output, odds: float) -> Output:
        # Small models find most film reviews positive; their offset was 1.89 (decision 22).
        odds = self.slope * (odds - self.offset)
        scores = log_probabilities(odds)
        text = read.choices[scores.index(max(scores))]
        best = max(scores)
        probability = math.exp(best)
        return replace(output, text=text, scores=scores, score=best, probability=probability)


def _fit(groups: Mapping[float, Sequence[float]]) -> tuple[float, float]:
    """Returns the offset and slope with which groups' mean log odds fit their shares best."""
    import numpy as np

    # The mean of log odds, exactly as `share: pooled` computes it later.
    means = np.array([fmean(odds) for odds in groups.values()])
    sizes = np.array([len(odds) for odds in groups.values()], float)
    slope, level, mean = fit_logistic(means, np.array([*groups]), sizes)
    if slope <= 0:
        raise UserError(
            "Calibrated cannot learn: the reader's scores do not rise with the percentages. Check"
            " whether the combiner's positive and negative are swapped, or its question is unclear"
        )
    return mean - level / slope, slope


def _share(target: str) -> float:
    match = _PERCENTAGE.fullmatch(target)
    if not match or float(match[1]) > _PERCENT:
        raise UserError(
            "Calibrated learns from percentages such as 57%, but the combiner's target is"
            f" {target!r:.60}: combine with Percentage, on a task whose answers are percentages"
        )
    return float(match[1]) / _PERCENT
