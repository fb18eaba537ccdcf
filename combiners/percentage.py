"""Computes the percentage of hits with a property, in the format of SpaceDigest's metric."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar, Literal

from leporello.combiners.stuff import arranged
from leporello.core.errors import ReadError, failed_reads
from leporello.core.notes import note
from leporello.core.records import Chunk, Combination, Example, Hit, Output, Read
from leporello.text.answers import label
from leporello.text.log_odds import log_odds, logistic

_ROUNDS = 30  # of expectation maximisation
_LIMIT = 9.0  # of the log odds of a hit
_LEAST = 1e-6


@dataclass(frozen=True)
class Percentage:
    """Asks the question about every hit, and answers with the percentage of positive hits: `57%`.

    If the reader scores choices, its log-probabilities or probabilities decide; otherwise, the
    choice that it writes counts. A hit abstains if its read fails, if the reader writes another
    text, and, with `decisions`, if both choices have the same score. The percentage ignores
    abstentions, with a note. If all hits abstain, the answer is empty.
    docs/decisions/0022-space-digest.md has the reasons.

    Attributes:
        positive: Choice that is counted.
        negative: Opposite choice.
        heading: Regular expression whose match at the beginning of a hit is not read (`Review 7:`,
            whose number influences a small model).
        share: Method for the percentage. `decisions` counts the hits for which `positive` is more
            likely. `pooled` is the probability of the mean log odds, for readers that were trained
            on percentages (`Calibrated`). `likeliest` is the share with the largest likelihood of
            these hits, for readers that were trained on equally many hits of both kinds
            (expectation maximisation, Saerens et al. 2002).
    """

    # So one failed read of fifty abstains, and the other 49 still count (decision 22).
    takes_failed_reads: ClassVar[bool] = True
    positive: str = "yes"
    negative: str = "no"
    heading: str = ""
    # Counting by default, which any reader can do. On 12 digests pooled odds reached 67.5, counting
    # 59.2; `likeliest` gained 9 points on films and 2 on hotels over counting (decision 22).
    share: Literal["decisions", "pooled", "likeliest"] = "decisions"

    def __post_init__(self) -> None:
        if "" in self._choices or self.positive.casefold() == self.negative.casefold():
            raise ValueError("positive and negative must differ, and must not be empty")
        try:
            re.compile(self.heading)
        except re.error as error:
            raise ValueError(
                f"heading {self.heading!r} is not a valid regular expression: {error}"
            ) from None

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields one read per hit; a hit whose read fails abstains, unless all reads fail."""
        chunks = [self._body(hit.chunk) for hit in arranged(hits, "document")]
        replies = yield [self._read(example, chunk) for chunk in chunks]
        failed_reads(replies)
        odds = [
            None if isinstance(reply, ReadError) else self._log_odds(reply) for reply in replies
        ]
        # A draw has no meaning here; counted as either choice, it would shift the percentage.
        decided = [v for v in odds if v is not None and (v or self.share != "decisions")]
        if len(decided) < len(odds):
            outcome = "the percentage is of the other hits" if decided else "there is no percentage"
            note(f"{'some' if decided else 'all'} hits abstained: {outcome}")
        # Without decisions the answer is empty, because 50 % would be a guess (decision 22).
        return f"{100 * self._share(decided):.0f}%" if decided else None

    def supervise(self, example: Example, reads: Sequence[Read]) -> Sequence[str | None]:
        """Returns the reference, the percentage of all hits together, for each read."""
        return [example.references[0] if example.references else None for _ in reads]

    @property
    def _choices(self) -> tuple[str, str]:
        return self.positive, self.negative

    def _body(self, chunk: Chunk) -> Chunk:
        # Log odds of reviews with higher numbers were lower by 0.2 to 0.5 (decision 22).
        match = re.match(self.heading, chunk.text)
        return chunk.document.chunk(chunk.start + (match.end() if match else 0), chunk.end)

    def _read(self, example: Example, passage: Chunk) -> Read:
        # Without the task's instruction, which asks for a percentage of all hits together.
        title = example.document.title
        return Read((passage,), example.question, choices=self._choices, title=title)

    def _log_odds(self, output: Output) -> float | None:
        """Returns the log odds of `positive` against `negative`; None if the hit abstains."""
        if not output.scores:
            choice = label(output.text.strip(), self._choices)
            # A written choice is certain, so only the method that counts accepts it.
            return {self.positive: math.inf, self.negative: -math.inf}.get(choice)
        return log_odds(output.scores)

    def _share(self, decided: Sequence[float]) -> float:
        if self.share == "decisions":
            return fmean(odds > 0 for odds in decided)
        # One infinite value would outweigh all other hits.
        if not all(map(math.isfinite, decided)):
            raise ValueError(
                f"share: {self.share} needs finite log odds, but this reader returns probabilities"
                " of 0 or 1: use share: decisions"
            )
        # The same formula with which `Calibrated` learns, so that its two numbers fit.
        return logistic(fmean(decided)) if self.share == "pooled" else _likeliest(decided)


def _likeliest(odds: Sequence[float]) -> float:
    """Returns the share that equals the mean of the probabilities that it implies."""
    # The half is neutral, and the likelihood has a single maximum, so any start reaches it.
    share = 0.5
    for _ in range(_ROUNDS):
        # The reader's mistakes draw counted decisions to the half; this corrects them without
        # any label (Saerens et al. 2002; decision 22).
        prior = math.log(share) - math.log1p(-share)
        # Limits keep every probability, and so the share, from 0 and 1.
        share = fmean(logistic(max(-_LIMIT, min(value, _LIMIT)) + prior) for value in odds)
        share = min(max(share, _LEAST), 1 - _LEAST)
    return share
