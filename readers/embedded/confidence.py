"""Confidence of an answer: probability that it is right, from the scores of all candidates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from leporello.readers.embedded.spans import Candidate
from leporello.text.squad import normalise, token_f1

_FURTHEST = 12.0  # limit of a distance, beyond which answers are equally certain
_SAME = 0.5  # least F1 of words of two candidates that are variants of one answer


@dataclass(frozen=True, slots=True)
class Signals:
    """Numbers that predict whether an answer is right."""

    score: float  # score of the best candidate
    margin: float  # distance of its score to that of the best candidate that is another answer
    # Distance between the log odds of the two best passages that they answer the question.
    lead: float

    @classmethod
    def of(cls, candidates: Sequence[Candidate], odds: Sequence[float]) -> Signals:
        """Returns the signals of at least one candidate, the best first."""
        best = candidates[0]
        words = normalise(best.text).split()
        others = (c for c in candidates if token_f1(words, normalise(c.text).split()) < _SAME)
        rival = next(others, candidates[-1])
        first, second = sorted((*odds, -math.inf, -math.inf), reverse=True)[:2]
        margins = (best.score - rival.score, first - second)
        return cls(best.score, *(min(margin, _FURTHEST) for margin in margins))


@dataclass(frozen=True, slots=True)
class Confidence:
    """Logistic function of the signals, which the recipe `confidence` fits."""

    score: float
    margin: float
    lead: float
    offset: float

    @classmethod
    def from_config(cls, row: Mapping[str, float]) -> Confidence:
        """Returns the function from the `confidence` of a model's config."""
        return cls(**{field.name: float(row[field.name]) for field in fields(cls)})

    def __call__(self, candidates: Sequence[Candidate], odds: Sequence[float]) -> float:
        """Returns the probability that the first candidate is right: the F1 to expect, 0 to 1."""
        return self.probability(Signals.of(candidates, odds)) if candidates else 0.0

    def probability(self, signals: Signals) -> float:
        """Returns the probability that an answer with these signals is right."""
        log_odds = self.offset + self.score * signals.score
        log_odds += self.margin * signals.margin + self.lead * signals.lead
        return 0.5 + 0.5 * math.tanh(log_odds / 2)
