"""Chooses the best of several combiners' answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.chains.outputs import answer_key, has_no_answer
from leporello.combiners.stuff import read_of
from leporello.core.calls.answers import as_text, confidence_of, with_more, with_way
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Combiner, Role
from leporello.core.records import JSON, Asking, Combination, Example, Hit, Output

JUDGE = "Which of these answers to the question is right by the text?"


@dataclass(frozen=True)
class BestOf:
    """Has every combiner answer, and returns the best answer.

    Empty answers are considered only if all answers are empty. If the best is unknown, the first
    answer is returned with a note.

    Attributes:
        combiners: Combiners, the most trusted first.
        by: Criterion: the `probability` that an answer is right; the `score` of the reader, which
            compares only answers of one reader; or a `judge`, the reader of `role`, which reads the
            hits and chooses among the answers.
        role: Role of the judge.
        judge: Instruction of the judge.
    """

    combiners: tuple[Combiner, ...]
    by: Literal["probability", "score", "judge"] = "probability"
    role: Role = ANSWER
    judge: str = JUDGE

    def __post_init__(self) -> None:
        if len(self.combiners) < 2:  # noqa: PLR2004
            raise ValueError(f"combiners needs at least two, got {len(self.combiners)}")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of one combiner after the other, then a read of the judge."""
        entrants: list[_Entrant] = []
        for number, combiner in enumerate(self.combiners, 1):
            answer, reads = yield from watched(run_combiner(combiner, example, hits))
            outputs = [output for _, output in reads]
            probability = confidence_of(answer, outputs)
            entrants.append(_Entrant(number, answer, probability, _score(answer, outputs)))
        # Extractive readers are often sure that a text has no answer, and would beat every answer.
        answered = [e for e in entrants if example.choices or not has_no_answer(e.text)]
        best = yield from self._best(example, hits, answered or entrants)
        rows = [*map(_row, entrants)]
        answer = with_more(best.answer, confidence=best.probability, candidates=rows)
        return with_way(answer, f"{best.number} of {len(entrants)} answers")

    def _best(
        self, example: Example, hits: Sequence[Hit], entrants: Sequence[_Entrant]
    ) -> Asking[_Entrant]:
        if self.by == "judge":
            return (yield from self._judged(example, hits, entrants))
        values = [e.probability if self.by == "probability" else e.score for e in entrants]
        pairs = [(v, e) for v, e in zip(values, entrants, strict=True) if v is not None]
        if len(pairs) < len(entrants):
            note(f"BestOf compared {len(pairs)} of {len(entrants)} answers: no {self.by} of others")
        return max(pairs, key=lambda pair: pair[0])[1] if pairs else entrants[0]

    def _judged(
        self, example: Example, hits: Sequence[Hit], entrants: Sequence[_Entrant]
    ) -> Asking[_Entrant]:
        # Reversed, so that the first of equal answers is kept: it is the most trusted one.
        distinct = {answer_key(entrant.text): entrant for entrant in reversed(entrants)}
        # All agree, so a read of the judge would cost money for the same answer.
        if len(distinct) == 1:
            return entrants[0]
        choices = tuple(dict.fromkeys(e.text for e in entrants if e in distinct.values()))
        ask = dataclasses.replace(
            read_of(example, hits), instruction=self.judge, choices=choices, role=self.role
        )
        [output] = yield [ask]
        chosen = distinct.get(answer_key(output.text))
        if chosen is None:
            note("BestOf kept the first answer: the judge chose none of them")
        return chosen or entrants[0]


@dataclass(frozen=True, slots=True)
class _Entrant:
    """Answer of a combiner, with the combiner's number from 1."""

    number: int
    answer: JSON
    probability: float | None
    score: float | None

    @property
    def text(self) -> str:
        return as_text(self.answer)


def _score(answer: JSON, outputs: Sequence[Output]) -> float | None:
    """Returns the highest score of outputs that are equal to an answer, or the last score."""
    text = as_text(answer)
    scores = [o.score for o in outputs if o.score is not None and o.text.strip() == text]
    return max(scores, default=outputs[-1].score if outputs else None)


def _row(entrant: _Entrant) -> JSON:
    return {"answer": entrant.text, "confidence": entrant.probability, "score": entrant.score}
