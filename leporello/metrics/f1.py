"""Token F1, as SQuAD v1 and SCROLLS compute it."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from leporello.metrics.metric import Statistics, means
from leporello.records import Example, Prediction

__all__ = ["F1", "normalise"]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Returns the text as SQuAD v1.1's `evaluate-v1.1.py` compares it.

    In this order: lower case, ASCII punctuation deleted, articles to blanks, white space to
    single blanks.
    """
    bare = text.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


@dataclass(frozen=True)
class F1:
    """Overlap of the answer's words with the best reference's (SQuAD v1; SCROLLS `f1`).

    The mean over examples of the best F1 over references. Zero wherever no word is shared, two
    empty answers included, as in the official code. Words are what blanks part: a text in Chinese
    or Japanese is one word or a few, and nearly all or nothing; this is the official behaviour.
    """

    name: ClassVar[str] = "f1"
    signature: ClassVar[str] = "f1|normalisation:squad-v1|references:max|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `f1`, or None where there are no references."""
        if not example.references:
            return None
        given = normalise(prediction.prediction).split()
        best = max(_f1(given, normalise(text).split()) for text in example.references)
        return {"f1": 100 * best}

    def score(self, statistics: Statistics) -> float:
        """Returns the example's F1."""
        return statistics["f1"]

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean `f1`."""
        return means(statistics)


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    shared = (Counter(given) & Counter(wanted)).total()
    return 2 * shared / (len(given) + len(wanted)) if shared else 0.0
