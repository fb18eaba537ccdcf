"""Scores answers by a reader's judgement on a rubric, with marks or by comparing pairs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Literal

from leporello.core.errors import UserError
from leporello.core.files import read_rows
from leporello.core.hashing import digest
from leporello.core.protocols import Positive, Role
from leporello.core.records import Asking, Example, Prediction, Read
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import Statistics, Summed

RUBRIC = (
    "Judge the answer to the question by the reference. A good answer says what the reference says,"
    " in whatever words, and nothing that contradicts it."
)
_PAIR = ("first", "second", "equal")
_NUMBER = re.compile(r"\d+")
_FEW = 2  # examples up to which no agreement is computed


@dataclass(frozen=True)
class Judge(Summed):
    """Score that a reader in the role of a judge gives an answer, 0 to 100.

    Pointwise, it gives each answer one of `scale` + 1 marks. Pairwise, it compares two answers in
    both orders, since judges prefer a position (Zheng et al., "Judging LLM-as-a-Judge", NeurIPS
    2023): 100 if the prediction wins twice, 50 if each answer wins once, or both are equal.
    Outputs that are not verdicts do not count; `judge_unanswered` is their share. The score never
    enters a mean with other scores.

    `judge_agrees[METRIC]` is Spearman's correlation with another metric over the same examples,
    `judge_agrees[people]` the correlation with people's scores, the number `human` in an example's
    metadata; both are multiplied by 100.

    Attributes:
        rubric: Description of a good answer.
        mode: Whether the judge rates each answer, or compares it with another answer.
        against: File of predictions to compare with, by the example's id; the reference if
            null.
        scale: Highest mark; the lowest is 0.
        role: Role of the reader that judges.
    """

    name = "judge"

    rubric: str = RUBRIC
    mode: Literal["pointwise", "pairwise"] = "pointwise"
    against: Path | None = None
    scale: Positive = 4
    role: Role = "judge"

    def __post_init__(self) -> None:
        if self.against and self.mode != "pairwise":
            raise ValueError("against requires mode: pairwise")

    @cached_property
    def signature(self) -> str:
        """Options of the computation."""
        options = f"rubric:{digest(self.rubric)[:8]}|role:{self.role}|scale:{self.scale}"
        return f"judge|mode:{self.mode}|{options}|average:mean|version:1"

    def check_files(self, data: str) -> None:  # noqa: ARG002 -- any data
        """Reads the answers to compare with."""
        if self.against:
            _ = self._answers_against

    @cached_property
    def _answers_against(self) -> Mapping[str, str]:
        path = self.against
        if path is None:
            return {}
        try:
            return {str(row["id"]): str(row["prediction"]) for row in read_rows(path)}
        except (OSError, KeyError, TypeError) as error:
            raise UserError(f"{path}: contains no predictions to compare: {error!r}") from None

    def measured(self, text: str, example: Example) -> Statistics:
        """Returns the statistics of a failure, which scores 0; other answers need a reader."""
        if text:
            raise MetricError("judge asks a reader: only `run` can compute its scores")
        return self._judged(0.0, example)

    def ask(self, prediction: Prediction, example: Example) -> Asking[Statistics | None]:
        """Yields one read, or two for a pair; returns the statistics of the example."""
        if not example.references or not prediction.prediction:
            return self.statistics(prediction, example)
        reads = [*self._reads(prediction, example)]
        if not reads:  # the compared predictions lack this example
            return None
        outputs = yield reads
        verdicts = [
            self._verdict(output.text, swapped=bool(place)) for place, output in enumerate(outputs)
        ]
        valid = [verdict for verdict in verdicts if verdict is not None]
        return self._judged(fmean(valid) if valid == verdicts else None, example)

    def score(self, statistics: Statistics) -> float:
        """Returns the example's score; 0 without a verdict."""
        return float(statistics["judge"] or 0.0)

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the score, and whether there is a verdict."""
        return [self.score(statistics), statistics["judge"] is not None]

    def scores(self, row: Sequence[float]) -> dict[str, float]:
        """Returns the mean over examples with verdicts."""
        total, judged = row
        return {self.name: total / max(judged, 1)}

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns the mean, the share without a verdict, and agreement with metrics and people."""
        judged = [row for row in statistics if row["judge"] is not None]
        scores = {"judge_unanswered": round(100 - 100 * len(judged) / len(statistics), 4)}
        if judged:
            scores = {"judge": round(fmean(row["judge"] for row in judged), 4), **scores}
        for name in dict.fromkeys(name for row in judged for name in row["beside"]):
            pairs = [(r["judge"], r["beside"][name]) for r in judged if name in r["beside"]]
            if len(pairs) > _FEW:
                scores[f"judge_agrees[{name}]"] = round(100 * _spearman(pairs), 4)
        return scores

    def _judged(self, score: float | None, example: Example) -> Statistics:
        human = example.metadata.get("human")
        is_number = isinstance(human, (int, float)) and not isinstance(human, bool)
        return {"judge": score, "beside": {"people": float(human)} if is_number else {}}  # type: ignore[arg-type]

    def _reads(self, prediction: Prediction, example: Example) -> Iterator[Read]:
        question, reference = example.question or example.instruction, example.references[0]
        if self.mode == "pointwise":
            marks = tuple(map(str, range(self.scale + 1)))
            shown = [f"Reference: {reference}", f"Answer: {prediction.prediction}"]
            ask = f"Which mark from 0 (worst) to {self.scale} (best) does the answer get?"
            yield self._read([f"Question: {question}", *shown], ask, marks)
            return
        compared = self._answers_against.get(example.id) if self.against else reference
        if compared is None:
            return
        ask = "Which answer is better, the first or the second, or are they equal?"
        for first, second in ((prediction.prediction, compared), (compared, prediction.prediction)):
            given_reference = [f"Reference: {reference}"] if self.against else []
            shown = [*given_reference, f"First answer: {first}", f"Second answer: {second}"]
            yield self._read([f"Question: {question}", *shown], ask, _PAIR)

    def _read(self, texts: Sequence[str], ask: str, choices: tuple[str, ...]) -> Read:
        return Read(tuple(texts), ask, self.rubric, choices, role=self.role)

    def _verdict(self, text: str, *, swapped: bool) -> float | None:
        """Parses an output into a score, 0 to 100; None if it is not a verdict."""
        if self.mode == "pointwise":
            mark = _NUMBER.search(text)
            is_valid = mark is not None and int(mark[0]) <= self.scale
            return 100 * int(mark[0]) / self.scale if mark and is_valid else None
        winners = [name for name in _PAIR if name in text.lower()]
        if len(winners) != 1:
            return None
        prediction_position = _PAIR[swapped]
        return 50.0 if winners[0] == "equal" else 100.0 * (winners[0] == prediction_position)


def _spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns Spearman's correlation; 0 if one side is constant."""
    from scipy.stats import spearmanr

    first, second = (set(side) for side in zip(*pairs, strict=True))
    if min(len(first), len(second)) == 1:
        return 0.0
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)
