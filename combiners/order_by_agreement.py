"""Orders texts by pairs of them: the reader compares them, or searches find their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Literal

from leporello.combiners.lists.ordering import answer, check_failed, check_pairs, items, most_agreed
from leporello.core.errors import ReadError
from leporello.core.notes import note
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read, Reply, Search
from leporello.text.log_odds import log_odds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# No other prompt was tried; a model of 135 million parameters stays at chance (decision 23).
QUESTION = "Which of the two passages comes first in the text that they were taken from, A or B?"
_LIMIT = 6.0  # with larger log odds, one answer would outweigh many
_LABELS = ("A", "B")
_SHARPNESS = 8.0  # not tuned: between 4 and 16 it makes little difference (decision 23)


@dataclass(frozen=True)
class OrderByPairs:
    """Asks for pairs of hits which comes first, and answers with the order of all hits: `3, 1, 2`.

    A hit's number is its rank among the hits in document order. For documents with parts, such as
    BookSumSort's, use the chunker `Parts` and the retriever `All`. The answer always has every
    number once. It is the likeliest order by the log odds of all comparisons (Kemeny's), exact up
    to 12 hits. Failed reads are ignored, unless all fail.

    Attributes:
        ask: Form of a comparison. `choices` gives the reader both passages, named A and B, and the
            choices `A` and `B` to score; `pair` gives it a `pair` of texts, whose `score` must be
            the probability that the first text comes first.
        both_ways: Whether each pair is asked in both orders, so that a bias for A or B cancels out.
    """

    takes_failed_reads: ClassVar[bool] = True
    ask: Literal["choices", "pair"] = "choices"
    both_ways: bool = True

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of reads; returns the order."""
        import numpy as np

        texts = items(example, hits)
        check_pairs(len(texts), "use larger or fewer chunks")
        # All, since one wrong answer then changes little (decision 23).
        pairs = list(combinations(range(len(texts)), 2))
        # Twice the reads, because small models like one letter whatever the texts (decision 23).
        ordered = [*pairs, *((b, a) for a, b in pairs if self.both_ways)]
        replies = yield [self._read(texts[a], texts[b]) for a, b in ordered]
        check_failed(replies)
        preferences = np.zeros((len(texts), len(texts)))
        for (first, second), value in zip(pairs, self._odds(replies, len(pairs)), strict=True):
            preferences[first, second] = value
        # Always a permutation: a model that writes one scores 0 for any slip (decision 23).
        return answer(most_agreed(preferences))

    def _odds(self, replies: Sequence[Reply], pairs: int) -> list[float]:
        """Returns the log odds of each pair; 0 with a failed read, in either order."""
        odds = [None if isinstance(r, ReadError) else self._log_odds(r) for r in replies]
        if not self.both_ways:
            return [value or 0.0 for value in odds]
        # Half the difference cancels a bias for A or B of any size (decision 23).
        ways = zip(odds[:pairs], odds[pairs:], strict=True)
        # Without the other way the bias would remain, so both count as undecided.
        return [0.0 if a is None or b is None else (a - b) / 2 for a, b in ways]

    def _read(self, first: Chunk, second: Chunk) -> Read:
        if self.ask == "pair":
            return Read((first, second), pair=(first.text, second.text))
        passages = ("Passage A:", first, "Passage B:", second)
        return Read(passages, question=QUESTION, choices=_LABELS)

    def _log_odds(self, output: Output) -> float:
        scores = output.scores
        if self.ask == "pair" and output.score is not None and 0 <= output.score <= 1:
            scores = (output.score, 1 - output.score)
        elif self.ask == "pair" or len(scores) != len(_LABELS):
            needed = "choices, such as CausalLM"
            if self.ask == "pair":
                needed = "a pair of texts with a probability, such as PairClassifier"
            raise ValueError(
                f"OrderByPairs(ask={self.ask!r}) needs a reader that scores {needed}; this reader"
                f" returned the score {output.score!r} and the scores {output.scores!r:.60}"
            )
        # Models can be certain of a wrong order.
        return max(-_LIMIT, min(_LIMIT, log_odds(scores)))


@dataclass(frozen=True)
class OrderByMatch:
    """Searches the document for each of the example's choices; answers with their order: `3, 1, 2`.

    The place of a choice is the place of one of its hits, with a probability proportional to
    score ** 8. The answer is the order with the largest expected number of correct pairs.
    Hits with scores of 0 or less are ignored. A choice without hits has the same probability for
    every place, which puts it in the middle, with a note. Nothing is read.
    """

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:  # noqa: ARG002 -- the signature of combiners
        """Yields one search per choice; returns the order. Raises ValueError without choices."""
        # Choices, not parts, so that no summary is found in its own text (decision 23).
        if not example.choices:
            raise ValueError(
                f"OrderByMatch orders the choices of an example, but {example.id!r} has no choices;"
                " to order parts of the document, use OrderByPairs or OrderByCoherence"
            )
        # BM25 finds 96.5 % of the pairs without reading; embeddings 89.0 % (decision 23).
        hits_by_choice = yield [Search(choice) for choice in example.choices]
        return answer(most_agreed(self._earlier(hits_by_choice)))

    def _earlier(self, hits_by_choice: Sequence[Sequence[Hit]]) -> NDArray[np.float64]:
        """Returns the probabilities that the row's choice precedes the column's; a tie is half."""
        import numpy as np

        # Powers of negative scores have no order.
        positive = [[hit for hit in hits if hit.score > 0] for hits in hits_by_choice]
        if not all(positive):
            note("OrderByMatch found no place for some of the texts: their order is a guess")
        middles = {_middle(hit) for hits in positive for hit in hits}
        column = {middle: number for number, middle in enumerate(sorted(middles))}
        # Not means of places, which pull every text to the middle (decision 23).
        places = np.zeros((len(hits_by_choice), max(len(column), 1)))
        for row, hits in enumerate(positive):
            best = max((hit.score for hit in hits), default=1.0)
            for hit in hits:
                places[row, column[_middle(hit)]] += (hit.score / best) ** _SHARPNESS
        # A text without hits can be anywhere, so it is put between the others (decision 23).
        places[[not hits for hits in positive]] = 1.0
        places /= places.sum(axis=1, keepdims=True)
        later = 1 - places.cumsum(axis=1)
        # Two texts at one place are undecided, so the tie counts half.
        earlier: NDArray[np.float64] = places @ later.T + places @ places.T / 2
        return earlier


def _middle(hit: Hit) -> int:
    """Returns twice the position of a hit's middle, in characters."""
    # Twice, to stay with integers.
    return hit.chunk.start + hit.chunk.end
