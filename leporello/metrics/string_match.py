"""Whether the references stand in the answer, as RULER and BABILong look for them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from leporello.core.records import Example, Prediction
from leporello.metrics.protocol import Averaged, Statistics

_CONTROL = re.compile(r"[\x00-\x1f]")
_PAIR = 3  # letters up to which a comma does not part answers: qa19's `n,w`


def _shares(text: str, example: Example) -> list[float]:
    """Returns 1 for each reference that stands in the answer, whatever its case, else 0."""
    text = _CONTROL.sub("\n", text.strip()).strip().lower()
    return [float(reference.lower() in text) for reference in example.references]


@dataclass(frozen=True)
class StringMatchAll(Averaged):
    """Share of the references that stand in the answer, whatever their case (RULER).

    What else the answer says does not count: a copy of the document would have them all.
    """

    name: ClassVar[str] = "string_match_all"
    signature: ClassVar[str] = "string_match_all|case:lower|references:mean|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the share of the references."""
        shares = _shares(text, example)
        return 100 * sum(shares) / len(shares)


@dataclass(frozen=True)
class StringMatchPart(Averaged):
    """Whether any reference stands in the answer, whatever its case (RULER's questions)."""

    name: ClassVar[str] = "string_match_part"
    signature: ClassVar[str] = "string_match_part|case:lower|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100 * max(_shares(text, example))


@dataclass(frozen=True)
class BabilongAccuracy(Averaged):
    """Whether the answer names the right label and no other (BABILong's `compare_answers`).

    Labels are those of the task, which stand under `gold` in the metadata; those that the question
    names do not count. Of the answer its first sentence is looked at.
    """

    name: ClassVar[str] = "babilong_accuracy"
    signature: ClassVar[str] = "babilong_accuracy|labels:only|sentence:first|average:mean|version:1"

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns `babilong_accuracy`, 100 or 0; None without references, or without labels."""
        gold: Any = example.metadata.get("gold")
        labels = gold.get("labels") if isinstance(gold, dict) else None
        if not example.references or not labels:
            return None
        right = _names_alone(
            example.references[0].lower(),
            prediction.prediction.lower(),
            example.question.lower(),
            {label.lower() for label in labels},
        )
        return {self.name: 100.0 * right}


def _names_alone(target: str, answer: str, question: str, labels: Collection[str]) -> bool:
    for end in (".", "<context>", "<example>"):
        answer = answer.partition(end)[0]
    named = {label for label in labels if label in answer and label not in question}
    wanted = target.split(",") if "," in target and len(target) > _PAIR else [target]
    return named.issuperset(wanted) and len(named) == len(wanted)
