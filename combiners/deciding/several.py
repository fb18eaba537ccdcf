"""Runs several combiners, or one on several inputs, and returns one of their answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from leporello.combiners.chains.outputs import (
    answer_key,
    confidence,
    has_no_answer,
    most_trusted,
)
from leporello.combiners.stuff import arranged
from leporello.core.calls.answers import as_text, confidence_of, with_more, with_way
from leporello.core.calls.contracts import in_role, run_combiner, watched
from leporello.core.notes import note
from leporello.core.protocols import Combiner, Count, Positive, Role, Share
from leporello.core.records import JSON, Combination, Example, Hit


@dataclass(frozen=True)
class BestOf:
    """Has every combiner answer, and returns the answer that is most probably right.

    Empty answers are considered only if all answers are empty. If no answer has a probability, the
    first one is returned with a note.

    Attributes:
        combiners: Combiners, the most trusted first.
    """

    combiners: tuple[Combiner, ...]

    def __post_init__(self) -> None:
        if len(self.combiners) < 2:  # noqa: PLR2004
            raise ValueError(f"combiners needs at least two, got {len(self.combiners)}")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one combiner after the other."""
        answers: list[JSON] = []
        probabilities: list[float | None] = []
        for combiner in self.combiners:
            answer, reads = yield from watched(run_combiner(combiner, example, hits))
            answers.append(answer)
            probabilities.append(confidence_of(answer, (output for _, output in reads)))
        texts = [*map(as_text, answers)]
        # Extractive readers are often sure that a text has no answer, and would beat every answer.
        answered = [n for n, t in enumerate(texts) if example.choices or not has_no_answer(t)]
        compared = answered or [*range(len(answers))]
        likely = {n: p for n in compared if (p := probabilities[n]) is not None}
        if len(likely) < len(compared):
            note(f"BestOf compared {len(likely)} of {len(compared)}: others have no probability")
        best = max(likely, key=likely.__getitem__, default=compared[0])
        pairs = zip(texts, probabilities, strict=True)
        rows: list[JSON] = [{"answer": text, "confidence": p} for text, p in pairs]
        answer = with_more(answers[best], confidence=probabilities[best], candidates=rows)
        return with_way(answer, f"{best + 1} of {len(answers)} answers")


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
        agree: Whether an answer must also equal the previous step's answer, in SQuAD's form.
    """

    steps: tuple[Combiner, ...]
    below: Share = 0.5
    agree: bool = False

    def __post_init__(self) -> None:
        if len(self.steps) < 2:  # noqa: PLR2004
            raise ValueError(f"a cascade needs at least two steps, got {len(self.steps)}")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one step after the other, until an answer is accepted."""
        before: str | None = None
        for number, step in enumerate(self.steps, 1):
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
            elif confidence >= self.below and agrees and has_answer:
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


@dataclass(frozen=True)
class SelfConsistency:
    """Runs another combiner on several arrangements of the hits and returns the commonest answer.

    Wang et al. ("Self-Consistency", 2022) sample reasoning paths. Here the hits differ, so that
    results are reproducible: ranked, in document order, in reverse, and then without some of the
    hits, evenly over the ranks. Answers that are equal in SQuAD's form vote together. The weight of
    a vote is the confidence of the last output (`Output.score`), or the same for all without
    scores. Ties go to the first answer. Summaries are never equal, so the most confident wins.

    Attributes:
        combiner: Combiner to run. A combiner that orders its hits sees only the different subsets.
            Searches find nothing new in later runs: put this into `MultiHop`, not the other way
            round.
        runs: Maximum number of runs; equal arrangements are run once.
    """

    combiner: Combiner
    runs: Positive = 5

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one run after the other."""
        votes: list[tuple[str, JSON, float]] = []
        for arrangement in arrangements(hits, self.runs):
            answer, reads = yield from watched(run_combiner(self.combiner, example, arrangement))
            score = reads[-1][1].score if reads else None
            key = answer_key(answer) if isinstance(answer, str) else json.dumps(answer)
            votes.append((key, answer, confidence(score)))
        return most_trusted(votes)


def arrangements(hits: Sequence[Hit], count: int) -> list[tuple[Hit, ...]]:
    """Returns at most `count` different arrangements of hits: orders, then subsets."""
    # Different inputs instead of sampled texts, so that a run has the same answers again.
    orders = [tuple(hits), tuple(arranged(hits, "document")), tuple(hits[::-1])]
    # With fewer hits than folds, each hit is left out once; a single hit is always kept.
    folds = min(max(count - len(orders), 0), len(hits)) if len(hits) > 1 else 0
    step = max(folds, 2)
    subsets = [tuple(h for n, h in enumerate(hits) if n % step != fold) for fold in range(folds)]
    return [*dict.fromkeys([*orders, *subsets])][:count]
