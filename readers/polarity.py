"""Reader that decides whether an opinion is positive, by weights of words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.embedded.word_weights import ReadsWordWeights
from leporello.readers.prompting.template import passage_text, spans_of
from leporello.text.log_odds import log_probabilities

# Few and frequent words, so that their negated words are frequent enough to have weights.
_NEGATIONS = frozenset({"not", "no", "never", "without", "nothing", "nor", "hardly", "cannot"})
_REACH = 3  # words after a negation that it negates
_PIECE = re.compile(r"[a-z]+(?:'[a-z]+)?|[!?.,;:]")
# Some corpora are tokenised: "is n't", "it 's".
_SPLIT_NOT = re.compile(r"(?<!\s)\s++n't\b")
_SPLIT_ENDING = re.compile(r"(?<!\s)\s++'(?=[a-z]{1,2}\b)")


@dataclass(frozen=True)
class Polarity(ReadsWordWeights, OneByOne):
    """Chooses between a positive and a negative choice, in this order; English.

    The log odds are the sum of the weights of the words in the text; negated words have their own
    weights. The weights are from reviews of films, hotels, restaurants and products.

    Attributes:
        model: Path of a folder that the recipe `polarity` wrote, or name of a model of the package.
    """

    _folder = "polarity"

    def log_odds(self, text: str) -> float:
        """Returns the log odds that an opinion is positive."""
        return self._weights.total(opinion_words(text))

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input; scores are log-probabilities.

        Raises:
            UserError: The weights are missing or damaged.
            ValueError: An input does not have two choices.
        """
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Polarity needs two choices, the positive one first")
        odds = self.log_odds("\n".join(map(passage_text, read.passages)))
        scores = log_probabilities(odds)
        best = max(scores)
        text = read.choices[odds < 0]
        return Output(text, best, scores, read=spans_of(read.passages), probability=math.exp(best))


def opinion_words(text: str) -> set[str]:
    """Returns the words of a text in lower case; the three after a negation as `not WORD`.

    Args:
        text: Text in English.
    """
    # One apostrophe, since the weights have `don't` only in this form.
    text = text.lower().replace("’", "'")
    text = _SPLIT_ENDING.sub("'", _SPLIT_NOT.sub("n't", text))
    words, negated = set(), 0
    for piece in _PIECE.findall(text):
        # A negation does not reach into the next clause.
        if piece in "!?.,;:":
            negated = 0
        # `!` and `?` have weights of their own.
        if piece not in ".,;:":
            # A set: a word that a review repeats is not more evidence, as in the training.
            words.add(f"not {piece}" if negated else piece)
        negated = max(0, negated - 1)
        if piece in _NEGATIONS or piece.endswith("n't"):
            negated = _REACH
    return words
