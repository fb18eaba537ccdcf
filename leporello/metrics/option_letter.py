"""Accuracy over option letters of ZeroSCROLLS, for QuALITY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, GoldError
from leporello.text.answers import LETTER


@dataclass(frozen=True)
class OptionLetter(Averaged):
    """Whether the first word A, B, C or D in the answer is the right letter.

    Only capitals count: `A good guess is B` means A. A text without a letter is wrong. Each
    reference must have a letter; references of SCROLLS are texts of options instead, which
    `exact_match` compares.
    """

    name: ClassVar[str] = "option_letter"
    signature: ClassVar[str] = "option_letter|letter:first-of-A-D|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0; each reference must have a letter."""
        return 100.0 * (
            _letter(text) in {_reference_letter(example, gold) for gold in example.references}
        )

    def parses(self, text: str, example: Example) -> bool:  # noqa: ARG002 -- required by the protocol
        """Returns whether a text has an option letter."""
        return _letter(text) is not None


def _letter(text: str) -> str | None:
    match = LETTER.search(text)
    return match.group() if match else None


def _reference_letter(example: Example, reference: str) -> str:
    letter = _letter(reference)
    if letter is None:
        raise GoldError(example, f"the reference {reference!r:.80} has no letter A, B, C or D")
    return letter
