"""Exact match of SQuAD v1 and SCROLLS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged
from leporello.text.squad import normalise


@dataclass(frozen=True)
class ExactMatch(Averaged):
    """Whether the answer equals a reference, ignoring case, punctuation and articles.

    The share of examples whose normalised prediction equals a normalised reference (SQuAD v1;
    SCROLLS `exact_match`); two texts that are empty after normalisation are equal.
    """

    name: ClassVar[str] = "exact_match"
    signature: ClassVar[str] = (
        "exact_match|normalisation:squad-v1|references:max|average:mean|version:1"
    )

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100.0 * (normalise(text) in map(normalise, example.references))
