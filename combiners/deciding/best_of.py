"""The best of several combiners' answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leporello.combiners.chains.said import answer_key, says_nothing
from leporello.combiners.stuff import read_of
from leporello.core.calls.answers import as_text, confidence_of, with_more, with_way
from leporello.core.calls.contracts import run_combiner, watched
from leporello.core.notes import note
from leporello.core.protocols import ANSWER, Combiner, Role
from leporello.core.records import JSON, Asking, Combination, Example, Hit, Output

JUDGE = "Which of these answers to the question is right by the text?"


@dataclass(frozen=True)
class BestOf:
    """Has every combiner answer, and keeps the best answer.

    Answers that say nothing are kept only if all do. Where nobody knows which is best, the first
    is kept, and that is noted.

    Attributes:
        combiners: Combiners, the one to be trusted first in front.
        by: What tells the best: the `probability` that it is right; the `score` of the reader,
            which compares only answers of one reader; or the reader of `role`, a `judge` that
            chooses among the answers with the hits before it.
        role: Role of the judge.
        judge: Instruction of the judge.
    """

    combiners: tuple[Combiner, ...]
    by: Literal["probability", "score", "judge"] = "probability"
    role: Role = ANSWER
    judge: str = JUDGE

    def __post_init__(self) -> None:
        if len(self.combiners) < 2:  # noqa: PLR2004
            raise ValueError(f"the best of two combiners at least, got {len(self.combiners)}")

    def combine(self, example: Example, hits: Sequence[Hit]) -> Combination:
        """Yields the rounds of each combiner, one after the other, then a read of the judge's."""
        found: list[_Entrant] = []
        for number, combiner in enumerate(self.combiners, 1):
            answer, seen = yield from watched(run_combiner(combiner, example, hits))
            outputs = [output for _, output in seen]
            likely = confidence_of(answer, outputs)
            found.append(_Entrant(number, answer, likely, _score(answer, outputs)))
        saying = [one for one in found if example.choices or not says_nothing(one.text)] or found
        best = yield from self._best(example, hits, saying)
        told = with_more(best.answer, confidence=best.probability, candidates=[*map(_row, found)])
        return with_way(told, f"{best.number} of {len(found)} answers")

    def _best(
        self, example: Example, hits: Sequence[Hit], found: Sequence[_Entrant]
    ) -> Asking[_Entrant]:
        if self.by == "judge":
            return (yield from self._judged(example, hits, found))
        values = [one.probability if self.by == "probability" else one.score for one in found]
        known = [
            (value, one) for value, one in zip(values, found, strict=True) if value is not None
        ]
        if len(known) < len(found):
            note(f"BestOf compared {len(known)} of {len(found)} answers: no {self.by} of others")
        return max(known, key=lambda pair: pair[0])[1] if known else found[0]

    def _judged(
        self, example: Example, hits: Sequence[Hit], found: Sequence[_Entrant]
    ) -> Asking[_Entrant]:
        distinct = {answer_key(one.text): one for one in reversed(found)}
        if len(distinct) == 1:
            return found[0]
        choices = tuple(dict.fromkeys(one.text for one in found if one in distinct.values()))
        ask = dataclasses.replace(
            read_of(example, hits), instruction=self.judge, choices=choices, role=self.role
        )
        [output] = yield [ask]
        chosen = distinct.get(answer_key(output.text))
        if chosen is None:
            note("BestOf kept the first answer: the judge chose none of them")
        return chosen or found[0]


@dataclass(frozen=True, slots=True)
class _Entrant:
    """An answer, by the number of its combiner."""

    number: int
    answer: JSON
    probability: float | None
    score: float | None

    @property
    def text(self) -> str:
        return as_text(self.answer)


def _score(answer: JSON, outputs: Sequence[Output]) -> float | None:
    """Returns the highest score of the outputs that say it, else of the last output."""
    text = as_text(answer)
    said = [o.score for o in outputs if o.score is not None and o.text.strip() == text]
    return max(said, default=outputs[-1].score if outputs else None)


def _row(one: _Entrant) -> JSON:
    return {"answer": one.text, "confidence": one.probability, "score": one.score}
