"""Cheap readers first, dearer ones where these are not sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.said import answer_key, says_nothing
from leporello.core.calls.answers import as_text, confidence_of, with_more, with_way
from leporello.core.calls.contracts import in_role, run_combiner, watched
from leporello.core.notes import note
from leporello.core.protocols import Combiner, Count, Role, Share
from leporello.core.records import Combination, Example, Hit


@dataclass(frozen=True)
class Cascade:
    """Asks one combiner after the other, and takes the first answer that is likely enough.

    As FrugalGPT (Chen et al. 2023) has it: an answer is taken unless its probability is too low, it
    is unlike the one before (if asked to look), or it says nothing: blank, `unanswerable`. An
    answer whose probability no reader knows is not taken, and that is noted. The last step's
    answer is always taken.

    The steps differ by their readers (`ByRole`), by their hits, or by what they do with these. What
    they cost, and how many went how far, is in the table of ways of a run.

    Attributes:
        steps: Combiners, the cheapest first.
        below: Probability below which an answer is not taken.
        each: Such a probability for each step but the last, in place of `below`.
        agree: Whether an answer must be that of the step before, too; equal in SQuAD's form.
    """

    steps: tuple[Combiner, ...]
    below: Share = 0.5
    each: tuple[Share, ...] = ()
    agree: bool = False

    def __post_init__(self) -> None:
        if len(self.steps) < 2:  # noqa: PLR2004
            raise ValueError(f"a cascade needs two steps at least, got {len(self.steps)}")
        if self.each and len(self.each) != len(self.steps) - 1:
            raise ValueError(
                "`each` needs a probability for each step but the last:"
                f" {len(self.steps) - 1}, got {len(self.each)}"
            )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of each step that is asked, one step after the other."""
        before: str | None = None
        least = self.each or (self.below,) * (len(self.steps) - 1)
        for number, (step, below) in enumerate(zip(self.steps, (*least, 0.0), strict=True), 1):
            answer, seen = yield from watched(run_combiner(step, example, hits))
            confidence = confidence_of(answer, (output for _, output in seen))
            if number == len(self.steps):
                break
            text = as_text(answer)
            # Of choices, even `Not mentioned` says something.
            says = bool(example.choices) or not says_nothing(text)
            same = before is None or not self.agree or answer_key(text) == answer_key(before)
            if confidence is None:
                note(f"Cascade went on after step {number}: no probability of its answer is known")
            elif confidence >= below and same and says:
                break
            before = text
        taken = with_more(answer, confidence=confidence, step=number)
        return with_way(taken, f"step {number} of {len(self.steps)}")


@dataclass(frozen=True)
class ByRole:
    """Runs another combiner; where it names no role, the reader of this one reads.

    Attributes:
        combiner: Combiner that is run.
        role: Role of the reader.
        hits: Number of the best hits that it gets; 0 is all.
    """

    combiner: Combiner
    role: Role
    hits: Count = 0

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds."""
        best = hits[: self.hits or None]
        return (yield from in_role(self.role, run_combiner(self.combiner, example, best)))
