"""Exact match and token F1 of SQuAD v1, SCROLLS and ZeroSCROLLS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from leporello.core.environment.extras import require
from leporello.core.records import Example
from leporello.metrics.protocol import Averaged
from leporello.text.squad import normalise, token_f1


@dataclass(frozen=True)
class ExactMatch(Averaged):
    """Whether the answer equals a reference, ignoring case, punctuation and articles.

    The share of examples whose normalised prediction equals a normalised reference (SQuAD v1;
    SCROLLS `exact_match`); two texts that are empty after normalisation are equal.
    """

    name = "exact_match"
    signature = "exact_match|normalisation:squad-v1|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns 100 or 0."""
        return 100.0 * (normalise(text) in map(normalise, example.references))


@dataclass(frozen=True)
class F1(Averaged):
    """Overlap of the answer's words with the best reference (SQuAD v1; SCROLLS `f1`).

    The mean over examples of the best F1 over references. Zero without shared words, even for
    two empty answers, as in the official code. Words are separated by blanks: a text in Chinese
    or Japanese has one word or a few, and scores nearly all or nothing, as in the official code.
    """

    name = "f1"
    signature = "f1|normalisation:squad-v1|references:max|average:mean|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the best F1 over references."""
        return 100 * best_f1(normalise, text, example.references)


@dataclass(frozen=True)
class F1Unidecode(Averaged):
    """Token F1 of ZeroSCROLLS: words are converted to ASCII after SQuAD v1's normalisation.

    `unidecode` transliterates last: `café` becomes `cafe`, but a curly apostrophe becomes straight
    after punctuation was deleted, so `it’s` differs from `it's`. The package `text-unidecode` is
    no substitute, since it converts `½` and thousands of other characters differently. Needs the
    extra `zero-scrolls`.
    """

    name = "f1_unidecode"

    def __post_init__(self) -> None:
        require(f"the metric {self.name!r}", "unidecode")

    @property
    def signature(self) -> str:
        """Options of the computation, with the version of `unidecode`."""
        options = "normalisation:squad-v1,unidecode|references:max|average:mean"
        return f"{self.name}|{options}|unidecode:{version('unidecode')}|version:1"

    def value(self, text: str, example: Example) -> float:
        """Returns the best F1 over references."""
        return 100 * best_f1(_in_ascii, text, example.references)


def _in_ascii(text: str) -> str:
    from unidecode import unidecode

    return unidecode(normalise(text))


def best_f1(normal: Callable[[str], str], guess: str, references: Sequence[str]) -> float:
    """Returns the best F1 over references, after normalisation."""
    words = normal(guess).split()
    return max(token_f1(words, normal(text).split()) for text in references)
