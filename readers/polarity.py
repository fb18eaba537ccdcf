"""Whether an opinion is positive: weights of words, without a network."""

from __future__ import annotations

import math
from dataclasses import dataclass

from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.embedded.word_weights import ReadsWordWeights
from leporello.readers.prompting.template import passage_text, spans_of
from leporello.text.english.polarity import opinion_words
from leporello.text.log_odds import log_probabilities


@dataclass(frozen=True)
class Polarity(ReadsWordWeights, OneByOne):
    """Says which of two choices an opinion is, the positive one first; English.

    The log odds are the sum of weights of the words that are there, those behind a negation
    apart. Reviews of films, hotels, restaurants and things are what it knows.

    Attributes:
        model: Path of a folder that the recipe `polarity` wrote, or the name of what comes with the
            package.
    """

    _folder = "polarity"

    def log_odds(self, text: str) -> float:
        """Returns the log odds that an opinion is positive."""
        return self._weights.total(opinion_words(text))

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input; scores are log-probabilities.

        Raises:
            UserError: The weights are missing or damaged.
            ValueError: There are not two choices.
        """
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Polarity tells two choices apart, the positive one first")
        odds = self.log_odds("\n".join(map(passage_text, read.passages)))
        scores = log_probabilities(odds)
        best = max(scores)
        text = read.choices[odds < 0]
        return Output(text, best, scores, read=spans_of(read.passages), probability=math.exp(best))
