"""Whether an opinion is positive: weights of words, without a network."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from leporello.core.records import Output, Read
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.embedded.word_weights import ReadsWordWeights
from leporello.readers.prompting.template import passage_text, spans_of
from leporello.text.log_odds import log_probabilities

_NEGATIONS = frozenset({"not", "no", "never", "without", "nothing", "nor", "hardly", "cannot"})
_REACH = 3  # words behind a negation that it turns
_PIECE = re.compile(r"[a-z]+(?:'[a-z]+)?|[!?.,;:]")
# Some corpora are tokenised: "is n't", "it 's".
_SPLIT_NOT = re.compile(r"(?<!\s)\s++n't\b")
_SPLIT_ENDING = re.compile(r"(?<!\s)\s++'(?=[a-z]{1,2}\b)")


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


def opinion_words(text: str) -> set[str]:
    """Returns the words of a text in lower case; up to three behind a negation are `not WORD`.

    Args:
        text: Text in English.
    """
    text = text.lower().replace("’", "'")
    text = _SPLIT_ENDING.sub("'", _SPLIT_NOT.sub("n't", text))
    found, turned = set(), 0
    for piece in _PIECE.findall(text):
        if piece in "!?.,;:":
            turned = 0
        if piece not in ".,;:":
            found.add(f"not {piece}" if turned else piece)
        turned = max(0, turned - 1)
        if piece in _NEGATIONS or piece.endswith("n't"):
            turned = _REACH
    return found
