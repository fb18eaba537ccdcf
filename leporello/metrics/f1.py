"""Token F1, as SQuAD v1, SCROLLS and ZeroSCROLLS compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

from leporello.core.environment.extras import require
from leporello.core.records import Example
from leporello.metrics.protocol import Averaged
from leporello.text.squad import normalise


@dataclass(frozen=True)
class F1(Averaged):
    """Overlap of the answer's words with the best reference's (SQuAD v1; SCROLLS `f1`).

    The mean over examples of the best F1 over references. Zero wherever no word is shared, two
    empty answers included, as in the official code. Words are what blanks part: a text in Chinese
    or Japanese is one word or a few, and nearly all or nothing; this is the official behaviour.
    """

    name: ClassVar[str] = "f1"
    signature: ClassVar[str] = "f1|normalisation:squad-v1|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the best F1 over references."""
        return 100 * best_f1(normalise, text, example.references)


@dataclass(frozen=True)
class F1Unidecode(Averaged):
    """Token F1 as ZeroSCROLLS computes it: what SQuAD v1 leaves is written in ASCII.

    The letters are transliterated last, by `unidecode`: `café` is `cafe`, but a curly apostrophe
    becomes a straight one after punctuation was deleted, so `it’s` is not `it's`. No other
    table will do: `text-unidecode` writes `½` otherwise, and thousands of other characters.

    Raises:
        UserError: The extra `zero-scrolls` is not installed.
    """

    name: ClassVar[str] = "f1_unidecode"

    def __post_init__(self) -> None:
        require(f"the metric {self.name!r}", "unidecode")

    @property
    def signature(self) -> str:
        """What is computed, with the version of `unidecode`."""
        options = "normalisation:squad-v1,unidecode|references:max|average:mean"
        return f"{self.name}|{options}|unidecode:{version('unidecode')}|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the best F1 over references."""
        return 100 * best_f1(_in_ascii, text, example.references)


def _in_ascii(text: str) -> str:
    from unidecode import unidecode

    return unidecode(normalise(text))


def best_f1(normal: Callable[[str], str], guess: str, references: Sequence[str]) -> float:
    """Returns the best F1 over references, of words as they are after normalisation."""
    words = normal(guess).split()
    return max(token_f1(words, normal(text).split()) for text in references)


def token_f1(guess: Sequence[str], reference: Sequence[str]) -> float:
    """Returns the F1 of two lists of words, 0 to 1; 0 where they share none."""
    shared = (Counter(guess) & Counter(reference)).total()
    return 2 * shared / (len(guess) + len(reference)) if shared else 0.0
