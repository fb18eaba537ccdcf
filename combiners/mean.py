"""The mean of what the reader makes of each hit: one number, not a text."""

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
    """Reads every hit on its own and returns the mean of the reader's scores; higher is better.

    Where the example has choices and the reader scores them, the first one's score counts: of
    the Shuffle Test's, that of `original`.

    Attributes:
        perplexity: Whether minus the perplexity is returned instead: the scores are mean
            log-likelihoods of a token (`per_token: true`), and each counts by the tokens that its
            window has anew, as in the code of the Shuffle Test's authors.
        tokenizer: Tokenizer that counts these: that of the windows, `words`, or a Hugging Face
            tokenizer by path or hub id.
    """

    perplexity: bool = False
    tokenizer: ModelSource = "words"

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, all in one round; without hits there is no answer."""
        if not hits:
            return None
        arrangement = arranged(hits, "document")
        outputs: list[Output] = yield [read_of(example, [hit]) for hit in arrangement]
        scores = [_score(output) for output in outputs]
        if not self.perplexity:
            return fmean(scores)
        new = _new_tokens(example.document, arrangement, self.tokenizer)
        try:
            return -math.exp(-fmean(scores, new))
        except OverflowError:
            raise ValueError(
                "Mean(perplexity=True) needs the mean log-likelihood of a token; these scores are"
                " too low to be such: give the reader per_token: true"
            ) from None


def _score(output: Output) -> float:
    score = output.scores[0] if output.scores else output.score
    if score is None:
        raise ValueError("Mean needs a reader that gives scores, as LogLikelihood does")
    return score


def _new_tokens(document: Document, hits: Sequence[Hit], model: str) -> list[int]:
    """Returns how many tokens end in each hit that ended in none before it."""
    import numpy as np

    ends = np.maximum.accumulate(document.tokens(tokenizer(model))[:, 1])
    through = ends.searchsorted([hit.chunk.end for hit in hits], "right")
    before = np.maximum.accumulate(np.append(0, through[:-1]))
    counts: list[int] = np.maximum(through - before, 0).tolist()
    return counts
