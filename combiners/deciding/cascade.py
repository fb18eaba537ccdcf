"""Runs cheap readers first, and more expensive ones if these are not confident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import answer_key, has_no_answer
from leporello.core.calls.answers import as_text, confidence_of, with_more, with_way
from leporello.core.calls.contracts import in_role, run_combiner, watched
from leporello.core.notes import note
from leporello.core.protocols import Combiner, Count, Role, Share
from leporello.core.records import Combination, Example, Hit


@dataclass(frozen=True)
class Cascade:
    """Runs one combiner after the other, and returns the first answer that is likely enough.

    FrugalGPT (Chen et al. 2023): an answer is accepted unless its probability is too low, it
    differs from the previous step's answer (with `agree`), or it is empty: blank, `unanswerable`.
    An answer of unknown probability is rejected with a note. The last step's answer is always
    accepted.

    The steps differ in their readers (`ByRole`), their hits, or their methods. The table of ways of
    a run has their costs, and how many answers each step gave.

    Attributes:
        steps: Combiners, the cheapest first.
        below: Probability below which an answer is rejected.
        each: Probabilities for each step but the last, which replace `below`.
        agree: Whether an answer must also equal the previous step's answer, in SQuAD's form.
    """

    steps: tuple[Combiner, ...]
    below: Share = 0.5
    each: tuple[Share, ...] = ()
    agree: bool = False

    def __post_init__(self) -> None:
        if len(self.steps) < 2:  # noqa: PLR2004
            raise ValueError(f"a cascade needs at least two steps, got {len(self.steps)}")
        if self.each and len(self.each) != len(self.steps) - 1:
            raise ValueError(
                "`each` needs a probability for each step but the last:"
                f" {len(self.steps) - 1}, got {len(self.each)}"
            )

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one step after the other, until an answer is accepted."""
        before: str | None = None
        least = self.each or (self.below,) * (len(self.steps) - 1)
        for number, (step, below) in enumerate(zip(self.steps, (*least, 0.0), strict=True), 1):
            answer, reads = yield from watched(run_combiner(step, example, hits))
            confidence = confidence_of(answer, (output for _, output in reads))
            if number == len(self.steps):
                break
            text = as_text(answer)
            # With choices, even `Not mentioned` is an answer.
            has_answer = bool(example.choices) or not has_no_answer(text)
            agrees = before is None or not self.agree or answer_key(text) == answer_key(before)
            if confidence is None:
                note(f"Cascade continued after step {number}: its answer has no probability")
            elif confidence >= below and agrees and has_answer:
                break
            before = text
        accepted = with_more(answer, confidence=confidence, step=number)
        return with_way(accepted, f"step {number} of {len(self.steps)}")


@dataclass(frozen=True)
class ByRole:
    """Runs another combiner; this role reads where the combiner names no other role.

    Attributes:
        combiner: Combiner to run.
        role: Role of the reader.
        hits: Number of the best hits that the combiner gets; 0 for all.
    """

    combiner: Combiner
    role: Role
    hits: Count = 0

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the combiner's rounds."""
        best = hits[: self.hits or None]
        return (yield from in_role(self.role, run_combiner(self.combiner, example, best)))
