"""Reads every hit separately; returns joined answers, a vote, the best, or the mean score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Literal

from leporello.combiners.chains.outputs import most_trusted
from leporello.combiners.stuff import LearnsReferences, Order, arranged, read_of
from leporello.core.errors import UserError
from leporello.core.protocols import ModelSource, Targets
from leporello.core.records import Chunk, Combination, Document, Example, Hit, Output, Read
from leporello.text.tokens import tokenizer


@dataclass(frozen=True)
class ReadEach:
    """Reads every hit separately.

    Attributes:
        keep: Rule for the answers. `join` joins all answers (translation, summaries of sections).
            `vote` returns the commonest answer, ignoring case and outer punctuation; ties go to the
            better-ranked hit. `best` returns the answer with the highest `Output.score`; ties go to
            the better-ranked hit. For choices, `vote` counts choices and `best` compares the scores
            of the best choice.
        order: Order of joined answers.
        skip: Answers to leave out, compared like votes (`unanswerable`); if all answers are left
            out, the first is returned.
    """

    keep: Literal["join", "vote", "best"] = "join"
    order: Order = "document"
    skip: tuple[str, ...] = ()

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one round with one read per hit; without hits, one read of only the question."""
        arrangement = arranged(hits, self.order if self.keep == "join" else "score")
        # SmolLM2-135M mixes passages up: F1 of 9.9 with four in one prompt, 15.0 with the best one;
        # two to four read one by one keep 12.9 to 14.3, with more evidence in view (decision 8).
        reads = [read_of(example, [hit]) for hit in arrangement] or [read_of(example, [])]
        # One round of short reads: T5 sees two of ten chunks, unless each is read (decision 17).
        outputs: list[Output] = yield reads
        skipped = {_vote(text) for text in self.skip}
        # A document in which every chunk is unanswerable is unanswerable, so one such answer stays.
        answers = [out for out in outputs if _vote(out.text) not in skipped] or outputs[:1]
        if self.keep == "join":
            return "\n".join(output.text for output in answers)
        if self.keep == "best":
            return self._best(answers)
        return most_trusted((_vote(output.text), output.text, 1.0) for output in answers)

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[Targets]:
        """Returns the references for reads that can answer the question, and `skip` for others.

        A read can answer if it has evidence, or without evidence a reference. Raises UserError
        without a question: the part of a summary that belongs to each hit is unknown.
        """
        # With choices no read is left out, since `best` compares the scores of all of them.
        if example.choices:
            return [example.references or None for _ in reads]
        if not example.question:
            raise UserError(
                "without a question, ReadEach cannot assign parts of the reference to hits: train"
                " with Stuff, and use the model with ReadEach"
            )
        nothing = self.skip[0] if self.skip else None
        return [_answers(example, read) or nothing for read in reads]

    def _best(self, answers: Sequence[Output]) -> str:
        if any(output.score is None for output in answers):
            raise ValueError(
                "ReadEach(keep='best') needs a reader that returns scores, but this one returns"
                " none: use keep: vote"
            )
        # `max` returns the first of equal answers, which is that of the better-ranked hit.
        return max(answers, key=lambda output: output.score or 0.0).text


def _answers(example: Example, read: Read) -> tuple[str, ...]:
    """Returns the references that the passages of a read can give."""
    chunks = [passage for passage in read.passages if isinstance(passage, Chunk)]
    if example.evidence:
        pairs = product(example.evidence, chunks)
        shared = any(span.overlaps(chunk.start, chunk.end) for span, chunk in pairs)
        return example.references if shared else ()
    texts = [chunk.text.casefold() for chunk in chunks]
    return tuple(r for r in example.references if any(r.casefold() in text for text in texts))


def _vote(text: str) -> str:
    return text.casefold().strip(" \t\r\n.,;:!?\"'()[]")


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
        # No number at all: 0 would be the highest possible log-likelihood.
        if not hits:
            return None
        arrangement = arranged(hits, "document")
        outputs: list[Output] = yield [read_of(example, [hit]) for hit in arrangement]
        scores = [_score(output) for output in outputs]
        if not self.perplexity:
            return fmean(scores)
        # The authors' code weighs each window by the tokens that it adds (decision 21).
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
