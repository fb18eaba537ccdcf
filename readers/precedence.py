"""Which of two texts of a story comes first: weights of words, without a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.embedded.word_weights import ReadsWordWeights
from leporello.readers.prompting.template import spans_of
from leporello.text.log_odds import logistic

_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@dataclass(frozen=True)
class Precedence(ReadsWordWeights, OneByOne):
    """Says how likely the first of a pair of texts comes before the second; English.

    Where a text stands is the sum of its words' weights: at the beginning of what is told of a
    story it begins and somebody lives somewhere, at its end they kill, find out and reveal.

    Attributes:
        model: Path of a folder that the recipe `plots` wrote, or the name of what comes with the
            package.
    """

    _folder = "plots"

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output a pair, in order; the score is the probability that it stands right.

        Raises:
            UserError: The weights are missing or damaged.
            ValueError: An input without a pair.
        """
        texts = {text for read in inputs for text in read.pair or ()}
        places = {text: self.place(text) for text in texts}
        return [self._compare(read, places) for read in inputs]

    def place(self, text: str) -> float:
        """Returns where a text is likely to stand: the greater, the later."""
        return self._weights.total(plot_words(text))

    def _compare(self, read: Read, places: dict[str, float]) -> Output:
        if read.pair is None:
            raise ValueError("Precedence compares pairs of texts: combine with OrderByPairs")
        first, second = (places[text] for text in read.pair)
        likely = logistic(second - first)
        sure = max(likely, 1 - likely)
        return Output(str(likely >= 0.5), likely, read=spans_of(read.passages), probability=sure)  # noqa: PLR2004 -- as likely as not


def plot_words(text: str) -> set[str]:
    """Returns the words and pairs of neighbouring words of a text in lower case."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    return {*words, *map(" ".join, pairwise(words))}
