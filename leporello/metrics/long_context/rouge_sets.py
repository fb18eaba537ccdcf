"""ROUGE over sets, as the package `rouge` 1.0.1 computes it, which LongBench and LooGLE score by.

It is not `rouge_score`'s: words are what blanks part, in their own case, sentences what full stops
part, and repetitions count once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from leporello.text.lcs import lcs_union

_KEPT = 512  # texts; several pipelines are scored against the same ones at about one time


class RougeParts(NamedTuple):
    """Sizes of what two texts have, and share.

    Attributes:
        guess: Number of different words, or pairs of words, in the answer.
        reference: The same of the reference.
        shared: Number that both have.
    """

    guess: int
    reference: int
    shared: int

    @property
    def recall(self) -> float:
        """The share of the reference that the answer has, 0 to 1."""
        return self.shared / self.reference if self.reference else 0.0

    @property
    def f(self) -> float:
        """The F-measure, 0 to 1; the package adds 1e-8 in the denominator."""
        precision = self.shared / self.guess if self.guess else 0.0
        return 2.0 * ((precision * self.recall) / (precision + self.recall + 1e-8))


@lru_cache(maxsize=_KEPT)
def _sentences(text: str) -> list[list[str]]:
    """Returns the words of each sentence; the package counts an empty one as one empty word."""
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def rouge_n(guess: str, reference: str, n: int) -> RougeParts:
    """Returns what two texts share of their words (n = 1) or pairs of words (n = 2)."""
    grams = _grams(_sentences(guess), n), _grams(_sentences(reference), n)
    return RougeParts(len(grams[0]), len(grams[1]), len(grams[0] & grams[1]))


def rouge_l(guess: str, reference: str) -> RougeParts:
    """Returns what two texts share in order: words in the union of all sentences' subsequences."""
    ours, theirs = _sentences(guess), _sentences(reference)
    return RougeParts(len(_grams(ours, 1)), len(_grams(theirs, 1)), len(lcs_union(theirs, ours)))


def _grams(sentences: Sequence[Sequence[str]], n: int) -> set[Hashable]:
    words = [word for sentence in sentences for word in sentence]
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
