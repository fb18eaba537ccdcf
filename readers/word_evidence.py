"""Readers without a network: weights of words, or how much of a document mentions somebody."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

from leporello.core.protocols import ModelSource, Share
from leporello.core.records import Chunk, Output, Read
from leporello.models.locate import locate
from leporello.readers.batching.one_by_one import OneByOne
from leporello.readers.prompting.template import passage_text, spans_of
from leporello.text.log_odds import log_probabilities, logistic


@dataclass(frozen=True)
class ReadsWordWeights:
    """Base of the readers with weights of words in a folder of `model`."""

    _folder: ClassVar[str]  # name of the folder within that of the model

    model: ModelSource = "leporello-en"

    def load(self) -> None:
        """Loads the weights, which `read` otherwise does on first use."""
        _ = self._weights

    def _total(self, words: Iterable[str]) -> float:
        """Returns the sum of the bias and the weights of distinct words."""
        weights, bias = self._weights
        # Sorted, since the sum of floats depends on the order, and that of a set on the process.
        return bias + sum(weights.get(word, 0.0) for word in sorted({*words}))

    @cached_property
    def _weights(self) -> tuple[dict[str, float], float]:
        from leporello.models.weights import ModelFolder, unpack

        folder = ModelFolder(Path(locate(self.model)) / self._folder)
        words = folder.checked("words.txt").decode("utf-8").splitlines()
        arrays = unpack(folder.checked("weights.safetensors"))
        weights = arrays["words"][0].tolist()
        return dict(zip(words, weights, strict=True)), float(arrays["bias"][0])


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
        return self._total(opinion_words(text))

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input with two choices; scores are log-probabilities."""
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Polarity needs two choices, the positive one first")
        odds = self.log_odds("\n".join(map(passage_text, read.passages)))
        scores = log_probabilities(odds)
        best = max(scores)
        text = read.choices[odds < 0]
        return Output(text, best, scores, read=spans_of(read.passages), probability=math.exp(best))


def opinion_words(text: str) -> set[str]:
    """Returns the words of a text in lower case; the three after a negation as `not WORD`."""
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
        """Returns one output per pair, in order; the score is the probability of this order."""
        # 86 texts are 7,310 pairs, so each text is placed once (decision 23).
        texts = {text for read in inputs for text in read.pair or ()}
        places = {text: self.place(text) for text in texts}
        return [self._compare(read, places) for read in inputs]

    def place(self, text: str) -> float:
        """Returns the position of a text in its story; larger numbers are later."""
        return self._total(plot_words(text))

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


_PARTS = 20  # equal parts of a document


@dataclass(frozen=True)
class Presence(OneByOne):
    """Chooses the first choice if passages are in enough parts of a document, or the second.

    Heroes are present throughout a book, villains only in parts of it. Without any passage, the
    answer is the first choice. The score is the share of the parts. On documents that the threshold
    was not chosen on, it was as often right as always answering `Hero` (decision 14).

    Attributes:
        share: Least share of the parts for the first choice.
    """

    needs_of_task: ClassVar[str] = "two choices"

    share: Share = 0.45  # the best on 66 characters of nine novels

    def _answer(self, read: Read) -> Output:
        """Returns the output of one input; raises ValueError unless it has two choices."""
        if len(read.choices) != 2:  # noqa: PLR2004 -- a pair
            raise ValueError("Presence needs two choices, first the one with more presence")
        passages = [passage for passage in read.passages if isinstance(passage, Chunk)]
        parts = {self._part(passage) for passage in passages}
        share = len(parts) / _PARTS
        # Without any passage the name was not found, so the commoner answer is the safer one.
        is_second = bool(parts) and share < self.share
        return Output(read.choices[is_second], share, read=spans_of(passages))

    def _part(self, passage: Chunk) -> int:
        # The middle is the mention: MentionWindows centres its chunks.
        middle = (passage.start + passage.end) // 2
        # Plus one, so that a passage at the very end is still in the last part.
        return _PARTS * middle // (len(passage.document.text) + 1)
