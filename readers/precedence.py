"""Reader that decides which of two texts of a story is earlier, by weights of words."""

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
    """Returns the probability that the first text of a pair precedes the second; English.

    The position of a text is the sum of its words' weights: words such as `begins` and `lives` are
    typical of the beginning of a plot, `kills` and `reveals` of its end. Except
    on stories like those of the training, orders by these probabilities were not shown to be better
    than the given order (decision 23).

    Attributes:
        model: Path of a folder that the recipe `plots` wrote, or name of a model of the package.
    """

    _folder = "plots"

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per pair, in order; the score is the probability of this order.

        Raises:
            UserError: The weights are missing or damaged.
            ValueError: An input without a pair.
        """
        # 86 texts are 7,310 pairs, so each text is placed once (decision 23).
        texts = {text for read in inputs for text in read.pair or ()}
        places = {text: self.place(text) for text in texts}
        return [self._compare(read, places) for read in inputs]

    def place(self, text: str) -> float:
        """Returns the position of a text in its story; larger numbers are later."""
        return self._weights.total(plot_words(text))

    def _compare(self, read: Read, places: dict[str, float]) -> Output:
        if read.pair is None:
            raise ValueError("Precedence compares pairs of texts: combine with OrderByPairs")
        first, second = (places[text] for text in read.pair)
        # Only positions, no chains of entities: this reaches 58 to 68 % of pairs (decision 23).
        before = logistic(second - first)
        best = max(before, 1 - before)
        return Output(str(before >= 0.5), before, read=spans_of(read.passages), probability=best)  # noqa: PLR2004 -- a half


def plot_words(text: str) -> set[str]:
    """Returns the words and pairs of neighbouring words of a text in lower case."""
    words = _WORD.findall(text.lower().replace("’", "'"))
    # A set, since words must show the place in a plot, not the length of the text.
    return {*words, *map(" ".join, pairwise(words))}
