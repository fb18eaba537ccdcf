"""In how many of a hundred hits something is so: a share, as the metric of SpaceDigest reads it."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

from leporello.combiners.stuff import arranged
from leporello.core.errors import ReadError, failed_reads
from leporello.core.notes import note
from leporello.core.protocols import Count
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read
from leporello.text.answers import label
from leporello.text.log_odds import log_odds, logarithms, logistic

_ROUNDS = 30  # of expectation maximisation
_SUREST = 9.0  # log odds of a hit
_LEAST = 1e-6


@dataclass(frozen=True)
class Percentage:
    """Asks the same of every hit on its own, and answers in how many of a hundred it is so: `57%`.

    A reader that scores choices says how likely each is, by log-probabilities or probabilities;
    of one that only writes, the choice that it names counts. A hit abstains where its read fails,
    where the reader writes something else or says `neither`, and, in `decisions`, where both
    choices are as likely. The percentage is then of the others, and a note tells. If all abstain
    there is no answer. All this is argued in docs/decisions/0022-space-digest.md.

    Attributes:
        positive: Choice that is counted.
        negative: Choice that stands against it.
        neither: A third choice, of hits that abstain; empty is none.
        heading: A regular expression; what it finds at a hit's beginning is not read (`Review 7:`,
            whose number sways a small model).
        question: Question that is asked of each hit; empty is the example's own question. The
            task's instruction speaks of all hits together, and is not read.
        share: Share that is returned: `decisions` counts the hits of which `positive` is the
            likelier. `probabilities` takes the mean of its probabilities: for readers whose
            probabilities can be believed. `pooled` takes the probability that the mean of its log
            odds is: for readers that learnt from percentages (`Calibrated`). `likeliest` takes the
            share under which these hits are the likeliest, for readers that learnt from as many
            hits of either kind (expectation maximisation, Saerens et al. 2002).
        neutral_texts: Number of texts that are made of words drawn from all hits, as long as a hit,
            and asked about too. The mean of their log odds is what the reader says where there is
            nothing to tell, and is taken off (domain-context calibration, Fei et al. 2023).
        seed: Seed of the words that are drawn.
        digits: Digits of the percentage behind its point.
    """

    takes_failed_reads: ClassVar[bool] = True
    positive: str = "yes"
    negative: str = "no"
    neither: str = ""
    heading: str = ""
    question: str = ""
    share: Literal["decisions", "probabilities", "pooled", "likeliest"] = "decisions"
    neutral_texts: Count = 0
    seed: Count = 0
    digits: Count = 0

    def __post_init__(self) -> None:
        named = [choice.casefold() for choice in self._choices]
        if not self.positive or not self.negative or len(set(named)) < len(named):
            raise ValueError("positive and negative, and neither if there is one, must differ")
        try:
            re.compile(self.heading)
        except re.error as error:
            raise ValueError(
                f"heading {self.heading!r} is no regular expression: {error}"
            ) from None

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read a hit, then one a neutral text; a hit whose read fails abstains.

        Raises:
            ReadError: Every read failed, or that of a neutral text.
            ValueError: Scores that are no probabilities; or none, where they are needed.
        """
        chunks = [self._body(hit.chunk) for hit in arranged(hits, "document")]
        outputs = yield [self._read(example, chunk) for chunk in chunks]
        failed_reads(outputs)
        neutral: list[Output] = []
        if chunks and self.neutral_texts:
            neutral = yield [self._read(example, text) for text in self._drawn(chunks)]
            for error in failed_reads(neutral):
                raise error
        every = [None if isinstance(one, ReadError) else self._log_odds(one) for one in outputs]
        bias = self._bias(neutral) if neutral else 0.0
        decided = [odds - bias for odds in every if odds is not None and self._decides(odds, bias)]
        _note_abstentions(len(decided), len(every))
        # Without any it is no answer rather than 50 %, which would be a guess (decision 22).
        return f"{100 * self._share(decided):.{self.digits}f}%" if decided else None

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[str | None]:
        """Returns the example's percentage for each hit: what all of them come to together."""
        return [example.references[0] if example.references else None for _ in reads]

    @property
    def _choices(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.positive, self.negative, self.neither)))

    def _body(self, chunk: Chunk) -> Chunk:
        """Returns the hit without its heading."""
        # Reviews with higher numbers had log odds lower by 0.2 to 0.5 (decision 22).
        match = re.match(self.heading, chunk.text)
        return chunk.document.chunk(chunk.start + (match.end() if match else 0), chunk.end)

    def _read(self, example: Example, passage: Chunk | str) -> Read:
        question = self.question or example.question
        return Read((passage,), question, choices=self._choices, title=example.document.title)

    def _drawn(self, chunks: Sequence[Chunk]) -> list[str]:
        """Returns texts of words of all hits, the same in whichever order these stand."""
        # Texts such as `N/A` have log odds of 1.1 to 1.3, reviews of 1.9 (decision 22).
        words = sorted(word for chunk in chunks for word in chunk.text.split())
        generator, length = random.Random(self.seed), round(len(words) / len(chunks))
        return [
            " ".join(generator.choices(words or [""], k=length)) for _ in range(self.neutral_texts)
        ]

    def _log_odds(self, output: Output) -> float | None:
        """Returns the log odds of `positive` against `negative`; None if neither is said."""
        if not output.scores:
            named = label(output.text.strip(), self._choices)
            return {self.positive: math.inf, self.negative: -math.inf}.get(named)
        neither = logarithms(output.scores)[2:]
        if neither and neither[0] > max(logarithms(output.scores)[:2]):
            return None
        return log_odds(output.scores)

    def _bias(self, neutral: Sequence[Output]) -> float:
        """Returns the mean log odds of neutral texts."""
        odds_of_texts = [self._log_odds(output) for output in neutral]
        finite = [odds for odds in odds_of_texts if odds is not None and math.isfinite(odds)]
        if not finite:
            raise ValueError(
                "neutral_texts calibrate by scores, and this reader gives none: leave them out"
            )
        return fmean(finite)

    def _decides(self, odds: float, bias: float) -> bool:
        return odds != bias or self.share != "decisions"

    def _share(self, decided: Sequence[float]) -> float:
        """Returns the share that log odds come to, 0 to 1."""
        if self.share == "decisions":
            return fmean(odds > 0 for odds in decided)
        if self.share == "probabilities":
            return fmean(map(logistic, decided))
        if not all(map(math.isfinite, decided)):
            raise ValueError(
                f"share: {self.share} needs log odds, and this reader is certain: use share:"
                " decisions"
            )
        return logistic(fmean(decided)) if self.share == "pooled" else _likeliest(decided)


def _likeliest(odds: Sequence[float]) -> float:
    """Returns the share that is the mean of the probabilities which follow from it."""
    share = 0.5
    for _ in range(_ROUNDS):
        prior = math.log(share) - math.log1p(-share)
        # A hit is never quite certain, nor then the share.
        share = fmean(logistic(max(-_SUREST, min(each, _SUREST)) + prior) for each in odds)
        share = min(max(share, _LEAST), 1 - _LEAST)
    return share


def _note_abstentions(decided: int, asked: int) -> None:
    if decided < asked:
        note(
            "some hits abstained: the percentage is of the others"
            if decided
            else "all hits abstained: there is no percentage"
        )
