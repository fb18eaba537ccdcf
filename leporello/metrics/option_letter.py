"""Accuracy over option letters, as ZeroSCROLLS computes it for QuALITY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import LETTER


@dataclass(frozen=True)
class OptionLetter(Averaged):
    """Whether the first of A, B, C, D that stands alone in the answer is the right one.

    Only capitals count, and the first one does: `A good guess is B` says A. A text without one is
    wrong. The references must have one each; SCROLLS has texts of options there instead, which
    `exact_match` compares.
    """

    name: ClassVar[str] = "option_letter"
    signature: ClassVar[str] = "option_letter|letter:first-of-A-D|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0; raises GoldError for a reference without a letter."""
        return 100.0 * (_letter(text) in {_wanted(example, gold) for gold in example.references})

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- of the protocol
        """Says whether a text has an option letter."""
        return _letter(text) is not None


def _letter(text: str) -> str | None:
    match = LETTER.search(text)
    return match.group() if match else None


def _wanted(example: Example, reference: str) -> str:
    letter = _letter(reference)
    if letter is None:
        raise GoldError(example, f"the reference {reference!r:.80} has no letter A, B, C or D")
    return letter
