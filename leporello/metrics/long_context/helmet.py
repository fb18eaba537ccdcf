"""Scores of HELMET that need no model, as in its `utils.py` and in trec_eval."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, Statistics
from leporello.text.squad import normalise

_RANKING = re.compile(r"(\d+)(?:\s*>\s*(\d+))*")
_CUT = 10


@dataclass(frozen=True)
class HelmetSubstring(Averaged):
    """Whether the answer contains a reference, ignoring case, punctuation and articles (HELMET)."""

    name: ClassVar[str] = "helmet_substring"
    signature: ClassVar[str] = (
        "helmet_substring|normalisation:squad-v1|references:max|average:mean|version:1"
    )

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        answer = normalise(text)
        return 100.0 * any(normalise(reference) in answer for reference in example.references)


@dataclass(frozen=True)
class HelmetNdcg(Averaged):
    """NDCG of the first ten ids in a ranking such as `3 > 1 > 2` (HELMET).

    The relevance of each id is `relevance` under `gold` in the metadata.
    """

    name: ClassVar[str] = "helmet_ndcg"
    signature: ClassVar[str] = "helmet_ndcg|cut:10|gain:linear|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `helmet_ndcg`, 0 to 100; None without relevance."""
        gold: Any = example.metadata.get("gold")
        relevance = gold.get("relevance") if isinstance(gold, dict) else None
        if not relevance:
            return None
        ideal = _gain(sorted(relevance.values(), reverse=True))
        gain = _gain(relevance.get(name, 0) for name in _ranking(prediction.prediction))
        return {self.name: 100 * gain / ideal if ideal else 0.0}


def _gain(labels: Iterable[int]) -> float:
    """Returns the discounted gain of the first ten labels; negative ones count as 0."""
    return sum(max(label, 0) / math.log2(rank + 2) for rank, label in enumerate([*labels][:_CUT]))


def _ranking(text: str) -> list[str]:
    """Returns the distinct ids of the longest ranking in a text."""
    text = re.sub(r"[\[\]:]", "", text).lower().replace("id", "")
    longest = max((match[0] for match in _RANKING.finditer(text)), key=len, default="")
    names = (name.strip() for name in longest.split(">"))
    return [*dict.fromkeys(name for name in names if name.isdigit())]
