"""ROUGE over sets as in the package `rouge` 1.0.1, which LongBench and LooGLE use.

It differs from `rouge_score`: blanks separate words, full stops separate sentences, case matters,
and repetitions count once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from leporello.text.lcs import lcs_union

_CACHED = 512  # texts, since several pipelines have the same references


class RougeParts(NamedTuple):
    """Sizes of two sets of words, and of their intersection.

    Attributes:
        guess: Number of distinct words, or pairs of words, in the answer.
        reference: Number of distinct words, or pairs of words, in the reference.
        shared: Number of words, or pairs of words, in both.
    """

    guess: int
    reference: int
    shared: int

    @property
    def recall(self) -> float:
        """Share of the reference that is in the answer, 0 to 1."""
        return self.shared / self.reference if self.reference else 0.0

    @property
    def f(self) -> float:
        """F-measure, 0 to 1, with 1e-8 added to the denominator as in the package."""
        precision = self.shared / self.guess if self.guess else 0.0
        return 2.0 * ((precision * self.recall) / (precision + self.recall + 1e-8))


@lru_cache(maxsize=_CACHED)
def _sentences(text: str) -> list[list[str]]:
    """Returns the words of each sentence; a blank sentence is one empty word, as in the package."""
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def rouge_n(guess: str, reference: str, n: int) -> RougeParts:
    """Returns the overlap of two texts in words (n = 1) or pairs of words (n = 2)."""
    grams = _grams(_sentences(guess), n), _grams(_sentences(reference), n)
    return RougeParts(len(grams[0]), len(grams[1]), len(grams[0] & grams[1]))


def rouge_l(guess: str, reference: str) -> RougeParts:
    """Returns the overlap in the union of all sentences' longest common subsequences."""
    answer, gold = _sentences(guess), _sentences(reference)
    return RougeParts(len(_grams(answer, 1)), len(_grams(gold, 1)), len(lcs_union(gold, answer)))


def _grams(sentences: Sequence[Sequence[str]], n: int) -> set[Hashable]:
    words = [word for sentence in sentences for word in sentence]
    return {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
