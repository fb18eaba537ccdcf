"""Texts put in order by asking, of two at a time, which comes first."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar, Literal, TypeAlias

from leporello.combiners.lists.ordering import (
    answer,
    check_failed,
    check_pairs,
    items,
    most_agreed,
)
from leporello.core.errors import ReadError
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read, Reply
from leporello.text.log_odds import log_odds

QUESTION = "Which of the two passages comes first in the text that they were taken from, A or B?"
_SUREST = 6.0  # log odds; beyond, one answer would outweigh many
_LABELS = ("A", "B")
# Yields reads, and comes to the log odds that the first of each pair comes first.
_Compared: TypeAlias = Generator[Sequence[Read], list[Reply], list[float]]


@dataclass(frozen=True)
class OrderByPairs:
    """Asks of pairs of hits which comes first, and answers with all in order: `3, 1, 2`.

    A hit's number is its place among them in the document. Take the chunker `Parts` and the
    retriever `All` for documents with parts, such as BookSumSort's. Whatever the reader says, every
    number stands in the answer once; what cannot be read decides nothing, unless nothing can be.

    Attributes:
        pairs: Pairs that are compared: `all` compares every pair, and takes the order that is
            likeliest by the log odds of all comparisons (Kemeny's): exact up to 12 hits, a search
            for more. `sort` is a merge sort: n log n comparisons, none of them made twice, so a
            wrong one is not outvoted.
        ask: Form of a comparison: `choices` gives the reader both passages, named A and B, and the
            choices `A` and `B` to score; `pair` gives it a `pair` of texts, whose `score` must be
            the probability that the first comes first.
        both_ways: Whether each pair is asked in both orders, so that a liking for A or B cancels.
        question: Question that is asked with `choices`.
    """

    takes_failed_reads: ClassVar[bool] = True
    pairs: Literal["all", "sort"] = "all"
    ask: Literal["choices", "pair"] = "choices"
    both_ways: bool = True
    question: str = QUESTION

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round of reads, or with `sort` as many as merging takes; returns the order."""
        texts, outputs = items(example, hits), list[Reply]()
        by = self._by_all if self.pairs == "all" else self._by_sort
        order = yield from by(texts, outputs)
        check_failed(outputs)
        return answer(order)

    def _by_all(
        self, texts: Sequence[Chunk], outputs: list[Reply]
    ) -> Generator[Sequence[Read], list[Reply], list[int]]:
        import numpy as np

        check_pairs(len(texts), "give pairs: sort, or larger chunks")
        pairs = list(combinations(range(len(texts)), 2))
        odds = yield from self._compare(texts, pairs, outputs)
        preferences = np.zeros((len(texts), len(texts)))
        for (one, other), value in zip(pairs, odds, strict=True):
            preferences[one, other] = value
        return most_agreed(preferences)

    def _by_sort(
        self, texts: Sequence[Chunk], outputs: list[Reply]
    ) -> Generator[Sequence[Read], list[Reply], list[int]]:
        """Sorts by merging: n log2 n comparisons at most, whatever they come to.

        All merges of a level go side by side, so that a round has a comparison for each of them. In
        every pair the first is one that stands earlier now.
        """
        runs = [[item] for item in range(len(texts))]
        while len(runs) > 1:
            merges = [
                _Merge(deque(left), deque(right))
                for left, right in zip(runs[::2], [*runs[1::2], []], strict=False)
            ]
            while open_ := [merge for merge in merges if merge.left and merge.right]:
                pairs = [(merge.left[0], merge.right[0]) for merge in open_]
                odds = yield from self._compare(texts, pairs, outputs)
                for merge, value in zip(open_, odds, strict=True):
                    merge.merged.append((merge.left if value >= 0 else merge.right).popleft())
            runs = [[*merge.merged, *merge.left, *merge.right] for merge in merges]
        return runs[0] if runs else []

    def _compare(
        self,
        texts: Sequence[Chunk],
        pairs: Sequence[tuple[int, int]],
        outputs: list[Reply],
    ) -> _Compared:
        """Yields one round; what failed, be it in one order only, has log odds of 0."""
        ordered = [*pairs, *((b, a) for a, b in pairs if self.both_ways)]
        compared = yield [self._read(texts[a], texts[b]) for a, b in ordered]
        outputs += compared
        odds = [None if isinstance(one, ReadError) else self._log_odds(one) for one in compared]
        if not self.both_ways:
            return [value or 0.0 for value in odds]
        # Half the difference: a liking for A or B cancels, whatever its size (decision 23).
        ways = zip(odds[: len(pairs)], odds[len(pairs) :], strict=True)
        return [0.0 if a is None or b is None else (a - b) / 2 for a, b in ways]

    def _read(self, first: Chunk, second: Chunk) -> Read:
        if self.ask == "pair":
            return Read((first, second), pair=(first.text, second.text))
        passages = ("Passage A:", first, "Passage B:", second)
        return Read(passages, question=self.question, choices=_LABELS)

    def _log_odds(self, output: Output) -> float:
        scores = output.scores
        if self.ask == "pair" and output.score is not None and 0 <= output.score <= 1:
            scores = (output.score, 1 - output.score)
        elif self.ask == "pair" or len(scores) != len(_LABELS):
            raise ValueError(
                f"OrderByPairs(ask={self.ask!r}) needs {_NEEDS[self.ask]}; this reader gave the"
                f" score {output.score!r} and the scores {output.scores!r:.60}"
            )
        return max(-_SUREST, min(_SUREST, log_odds(scores)))


_NEEDS = {
    "choices": "a reader that scores choices, as CausalLM does",
    "pair": "a reader that gives a pair of texts a probability, as PairClassifier does",
}


@dataclass(frozen=True, slots=True)
class _Merge:
    left: deque[int]
    right: deque[int]
    merged: list[int] = field(default_factory=list)
