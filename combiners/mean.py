"""Computes the mean of the reader's scores of all hits: one number, not a text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from leporello.combiners.stuff import LearnsReferences, arranged, read_of
from leporello.core.protocols import ModelSource
from leporello.core.records import Combination, Document, Example, Hit, Output
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class Mean(LearnsReferences):
    """Reads every hit separately and returns the mean of the reader's scores; higher is better.

    If the reader scores choices, the score of the first choice counts: `original` in the Shuffle
    Test.

    Attributes:
        perplexity: Whether to return minus the perplexity instead. Scores are then mean
            log-likelihoods per token (`per_token: true`), weighted by the number of tokens of each
            hit that earlier hits lack, as in the code of the Shuffle Test's authors.
        tokenizer: Tokenizer that counts these tokens; use that of the chunker: `words`, or a
            Hugging Face tokenizer by path or hub id.
    """

    perplexity: bool = False
    tokenizer: ModelSource = "words"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit; returns None without hits."""
        if not hits:
            return None
        arrangement = arranged(hits, "document")
        outputs: list[Output] = yield [read_of(example, [hit]) for hit in arrangement]
        scores = [_score(output) for output in outputs]
        if not self.perplexity:
            return fmean(scores)
        # Chunks overlap, and a token that is counted twice would weigh twice.
        new = _new_tokens(example.document, arrangement, self.tokenizer)
        try:
            return -math.exp(-fmean(scores, new))
        except OverflowError:
            raise ValueError(
                "Mean(perplexity=True) needs mean log-likelihoods per token, but these scores are"
                " too low: set per_token: true for the reader"
            ) from None


def _score(output: Output) -> float:
    score = output.scores[0] if output.scores else output.score
    if score is None:
        raise ValueError("Mean needs a reader that returns scores, such as LogLikelihood")
    return score


def _new_tokens(document: Document, hits: Sequence[Hit], model: str) -> list[int]:
    """Returns the number of tokens that end in each hit and in no earlier hit."""
    import numpy as np

    ends = np.maximum.accumulate(document.tokens(tokenizer(model))[:, 1])
    through = ends.searchsorted([hit.chunk.end for hit in hits], "right")
    before = np.maximum.accumulate(np.append(0, through[:-1]))
    counts: list[int] = np.maximum(through - before, 0).tolist()
    return counts
