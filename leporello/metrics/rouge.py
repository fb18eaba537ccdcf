"""ROUGE as in the package `rouge_score`, with SCROLLS' geometric mean, and as in `rouge` 1.0.1."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from statistics import fmean
from typing import NamedTuple

from leporello.core.records import Example
from leporello.metrics.protocol import Averaged, Numbers, Statistics
from leporello.text.lcs import lcs_length, lcs_union, places

_TYPES = ("rouge1", "rouge2", "rougeL")
_WORD = re.compile(r"[a-z0-9]+")
_CACHED = 64  # references, since several pipelines have the same references


@dataclass(frozen=True)
class Rouge(Averaged):
    """ROUGE F-measures of summaries, and the geometric mean of their means (SCROLLS `rouge`).

    The numbers are those of `rouge_score` 0.1.2. Each type uses its best reference; `rouge`
    is the cube root of the product of the three corpus means. Words are not stemmed, and are runs
    of `a-z0-9`: every other letter separates words, so a text without Latin letters scores 0.
    rougeLsum is left out, since SCROLLS computes it without reporting it.
    """

    name = "rouge"

    @property
    def signature(self) -> str:
        """Options of the computation."""
        options = "types:1,2,L|stemmer:no|references:max-per-type"
        return f"{self.name}|{options}|mean:geometric-of-corpus-means|version:1"

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns `rouge1`, `rouge2` and `rougeL`."""
        by_kind = zip(*(_f_measures(gold, text) for gold in example.references), strict=True)
        return {kind: 100 * max(f) for kind, f in zip(_TYPES, by_kind, strict=True)}

    def score(self, statistics: Statistics) -> float:
        """Returns the geometric mean of the example's scores; the corpus score is another."""
        return _geometric_mean([statistics])

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean of each type, and their geometric mean under the metric's name."""
        mean = round(_geometric_mean(statistics), 4)
        return super().aggregate(statistics) | {self.name: mean}

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the three F-measures."""
        return [statistics[kind] for kind in _TYPES]

    def of_sums(self, sums: Numbers, counts: Numbers) -> Numbers:
        """Returns the geometric means of the means."""
        import numpy as np

        scores: Numbers = np.cbrt(np.prod(sums, axis=1)) / counts
        return scores


@dataclass(frozen=True)
class RougeScrolls(Rouge):
    """ROUGE that ranks in SCROLLS and ZeroSCROLLS: the geometric mean of three corpus means."""

    name = "rouge_scrolls"


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


@lru_cache(maxsize=_CACHED)
def _counted(text: str) -> tuple[list[str], Counter[str], Counter[tuple[str, str]]]:
    words = _words(text)
    return words, Counter(words), Counter(pairwise(words))


def _f_measures(reference: str, guess: str) -> tuple[float, float, float]:
    words, unigrams, bigrams = _counted(reference)
    guess_words, guess_unigrams, guess_bigrams = _counted(guess)
    sizes = len(words), len(guess_words)
    return (
        _f((unigrams & guess_unigrams).total(), *sizes),
        _f((bigrams & guess_bigrams).total(), *(size - 1 for size in sizes)),
        _f(lcs_length(_places(reference), sizes[0], guess_words), *sizes),
    )


@lru_cache(maxsize=_CACHED)
def _places(reference: str) -> dict[str, int]:
    return places(_counted(reference)[0])


def _f(shared: int, reference_size: int, guess_size: int) -> float:
    if not shared:
        return 0.0
    precision, recall = shared / guess_size, shared / reference_size
    return 2 * precision * recall / (precision + recall)  # order of operations as in `rouge_score`


def rouge_l_sum(text: str, reference: str) -> float:
    """Returns `rouge_score`'s rougeLsum, 0 to 1: lines are sentences, and no word counts twice."""
    answer, gold = (
        [_words(line) for line in lines.split("\n") if line] for lines in (text, reference)
    )
    counts = Counter(chain(*answer))
    return _f((lcs_union(answer, gold) & counts).total(), sum(map(len, gold)), counts.total())


def _geometric_mean(statistics: Sequence[Statistics]) -> float:
    # The benchmark's code uses the corpus means; a mean over examples is lower.
    product = math.prod(fmean(s[kind] for s in statistics) for kind in _TYPES)
    return math.cbrt(product)


# The package `rouge`, which LongBench and LooGLE use.
_CACHED_SENTENCES = 512  # texts, since several pipelines have the same references


class RougeParts(NamedTuple):
    """Sizes of two sets of words, and of their intersection."""

    guess: int  # number of distinct words, or pairs of words, in the answer
    reference: int  # number of distinct words, or pairs of words, in the reference
    shared: int  # number of words, or pairs of words, in both

    @property
    def recall(self) -> float:
        """Share of the reference that is in the answer, 0 to 1."""
        return self.shared / self.reference if self.reference else 0.0

    @property
    def f(self) -> float:
        """F-measure, 0 to 1, with 1e-8 added to the denominator as in the package."""
        precision = self.shared / self.guess if self.guess else 0.0
        return 2.0 * ((precision * self.recall) / (precision + self.recall + 1e-8))


@lru_cache(maxsize=_CACHED_SENTENCES)
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


def _grams(sentences: Sequence[Sequence[str]], n: int) -> set[tuple[str, ...]]:
    return {*grams([word for sentence in sentences for word in sentence], n)}


def grams(words: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Returns the runs of `n` words."""
    return zip(*(words[first:] for first in range(n)), strict=False)
