"""Confidence of an answer: probability that it is right, from the scores of all candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from leporello.readers.embedded.spans import Candidate

_FURTHEST = 12.0  # limit of a distance: greater ones say nothing more
_RANK = 2  # of the candidate whose distance counts; the second is often a variant of the best


@dataclass(frozen=True, slots=True)
class Signals:
    """Numbers that predict whether an answer is right.

    Attributes:
        score: Score of the best candidate.
        margin: Distance of its score to that of the third candidate, or of the last of fewer.
        lead: Distance between the log odds of the two best passages that they answer the question.
    """

    score: float
    margin: float
    lead: float

    @classmethod
    def of(cls, candidates: Sequence[Candidate], odds: Sequence[float]) -> Signals:
        """Returns the signals of at least one candidate, the best first.

        Args:
            candidates: Candidates for the answer.
            odds: Log odds of each passage that it answers the question.
        """
        last = candidates[min(_RANK, len(candidates) - 1)]
        first, second = sorted((*odds, -math.inf, -math.inf), reverse=True)[:2]
        best = candidates[0].score
        return cls(best, min(best - last.score, _FURTHEST), min(first - second, _FURTHEST))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Logistic function of the signals, which the recipe `confidence` fits.

    Attributes:
        score: Weight of the score.
        margin: Weight of the margin.
        lead: Weight of the lead.
        offset: Log odds of an answer whose signals are 0.
    """

    score: float
    margin: float
    lead: float
    offset: float

    @classmethod
    def from_config(cls, row: Mapping[str, float]) -> Confidence:
        """Returns the function from the `confidence` of a model's config."""
        return cls(**{field.name: float(row[field.name]) for field in fields(cls)})

    def __call__(self, candidates: Sequence[Candidate], odds: Sequence[float]) -> float:
        """Returns the probability that the first candidate is right: the F1 to expect, 0 to 1.

        Args:
            candidates: Candidates for the answer, the best first.
            odds: Log odds of each passage that it answers the question.
        """
        return self.probability(Signals.of(candidates, odds)) if candidates else 0.0

    def probability(self, signals: Signals) -> float:
        """Returns the probability that an answer with these signals is right."""
        log_odds = self.offset + self.score * signals.score
        log_odds += self.margin * signals.margin + self.lead * signals.lead
        return 0.5 + 0.5 * math.tanh(log_odds / 2)
