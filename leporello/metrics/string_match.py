"""Whether the answer contains the references, as in RULER and BABILong."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, Statistics

_CONTROL = re.compile(r"[\x00-\x1f]")
_PAIR = 3  # a comma in at most 3 letters does not separate answers: qa19's `n,w`


def _shares(text: str, example: Example) -> list[float]:
    """Returns 1 for each reference that the answer contains, ignoring case, otherwise 0."""
    text = _CONTROL.sub("\n", text.strip()).strip().lower()
    return [float(reference.lower() in text) for reference in example.references]


@dataclass(frozen=True)
class StringMatchAll(Averaged):
    """Share of the references that the answer contains, ignoring case (RULER).

    Additional text in the answer is not penalised: a copy of the document would score 100.
    """

    name: ClassVar[str] = "string_match_all"
    signature: ClassVar[str] = "string_match_all|case:lower|references:mean|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the share of the references."""
        shares = _shares(text, example)
        return 100 * sum(shares) / len(shares)


@dataclass(frozen=True)
class StringMatchPart(Averaged):
    """Whether the answer contains any reference, ignoring case (RULER's questions)."""

    name: ClassVar[str] = "string_match_part"
    signature: ClassVar[str] = "string_match_part|case:lower|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100 * max(_shares(text, example))


@dataclass(frozen=True)
class BabilongAccuracy(Averaged):
    """Whether the answer names the right label and no other (BABILong's `compare_answers`).

    Labels are the task's labels, under `gold` in the metadata, except those that the question
    names. Only the first sentence of the answer counts.
    """

    name: ClassVar[str] = "babilong_accuracy"
    signature: ClassVar[str] = "babilong_accuracy|labels:only|sentence:first|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `babilong_accuracy`, 100 or 0; None without references or labels."""
        gold: Any = example.metadata.get("gold")
        labels = gold.get("labels") if isinstance(gold, dict) else None
        if not example.references or not labels:
            return None
        right = _names_only(
            example.references[0].lower(),
            prediction.prediction.lower(),
            example.question.lower(),
            {label.lower() for label in labels},
        )
        return {self.name: 100.0 * right}


def _names_only(target: str, answer: str, question: str, labels: Collection[str]) -> bool:
    for end in (".", "<context>", "<example>"):
        answer = answer.partition(end)[0]
    predicted = {label for label in labels if label in answer and label not in question}
    expected = target.split(",") if "," in target and len(target) > _PAIR else [target]
    return predicted.issuperset(expected) and len(predicted) == len(expected)
