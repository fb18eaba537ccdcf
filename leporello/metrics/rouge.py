"""ROUGE-1, -2 and -L with their geometric mean, as SCROLLS computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from leporello.metrics.metric import Statistics, means
from leporello.records import Example, Prediction

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer

__all__ = ["Rouge"]

_TYPES = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class Rouge:
    """ROUGE F-measures of summaries, and the geometric mean of their means (SCROLLS `rouge`).

    Each type takes its own best reference; `rouge` is the cube root of the product of the three
    corpus means. No stemming. Words are runs of `a-z0-9`: every other letter parts words, so a
    text without Latin letters scores 0. rougeLsum, which SCROLLS reports beside and does not use,
    needs NLTK's sentence data and is left out.
    """

    name: ClassVar[str] = "rouge"

    @property
    def signature(self) -> str:
        """What is computed, with the version of `rouge_score`."""
        options = "types:1,2,L|stemmer:no|references:max-per-type|mean:geometric-of-corpus-means"
        return f"rouge|{options}|rouge_score:{version('rouge-score')}|version:1"

    @cached_property
    def _scorer(self) -> RougeScorer:
        from rouge_score.rouge_scorer import RougeScorer

        return RougeScorer(list(_TYPES), use_stemmer=False)

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `rouge1`, `rouge2`, `rougeL`, or None where there are no references."""
        if not example.references:
            return None
        tried = [self._scorer.score(text, prediction.prediction) for text in example.references]
        return {kind: 100 * max(scores[kind].fmeasure for scores in tried) for kind in _TYPES}

    def score(self, statistics: Statistics) -> float:
        """Returns the geometric mean of the example's three scores.

        The corpus score is not the mean of these, but the geometric mean of the means.
        """
        return _geometric_mean([statistics])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean of each type, and their geometric mean as `rouge`."""
        if not statistics:
            return {}
        return means(statistics) | {"rouge": round(_geometric_mean(statistics), 4)}


def _geometric_mean(statistics: Sequence[Statistics]) -> float:
    product = math.prod(fmean(s[kind] for s in statistics) for kind in _TYPES)
    return math.cbrt(product)
