"""A reader's opinion of an answer, by a rubric: how good it is, or whether it is the better one."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Literal

from leporello.core.errors import UserError
from leporello.core.files import read_rows
from leporello.core.hashing import digest
from leporello.core.protocols import Positive, Role
from leporello.core.records import Example, Output, Prediction, Read
from leporello.metrics.own import MetricError
from leporello.metrics.protocol import Statistics, Summed

RUBRIC = (
    "Judge the answer to the question by the reference. A good answer says what the reference says,"
    " in whatever words, and nothing that contradicts it."
)
_PAIR = ("first", "second", "equal")
_NUMBER = re.compile(r"\d+")
_FEW = 2  # examples that agreement can be told of


@dataclass(frozen=True)
class Judge(Summed):
    """How good a reader in the role of a judge finds an answer, 0 to 100.

    Pointwise it gives each answer one of `scale` + 1 marks. Pairwise it is shown two answers, in
    both orders since judges prefer a place (Zheng et al., "Judging LLM-as-a-Judge", NeurIPS 2023):
    100 is the prediction each time, 50 is each once, or equal. What is no verdict is not counted,
    and `judge_unanswered` tells its share. It is never part of a mean with other scores.

    `judge_agrees[METRIC]` is Spearman's correlation with another metric over the same examples,
    `judge_agrees[people]` with people's scores, where examples have a number `human` in their
    metadata; both times 100.

    Attributes:
        rubric: Text that says what a good answer is.
        mode: Whether each answer is judged alone, or beside another.
        against: File of predictions that are the other answer pairwise, by the example's id; the
            reference if null.
        scale: Highest mark; the lowest is 0.
        role: Role of the reader that judges.
    """

    name: ClassVar[str] = "judge"

    rubric: str = RUBRIC
    mode: Literal["pointwise", "pairwise"] = "pointwise"
    against: Path | None = None
    scale: Positive = 4
    role: Role = "judge"

    def __post_init__(self) -> None:
        if self.against and self.mode != "pairwise":
            raise ValueError("against is for mode: pairwise")

    @cached_property
    def signature(self) -> str:
        """What is asked."""
        asked = f"rubric:{digest(self.rubric)[:8]}|role:{self.role}|scale:{self.scale}"
        return f"judge|mode:{self.mode}|{asked}|average:mean|version:1"

    def check_files(self, data: str) -> None:  # noqa: ARG002 -- any data
        """Reads the other answers.

        Raises:
            UserError: They are not there, or no predictions.
        """
        if self.against:
            _ = self._others

    @cached_property
    def _others(self) -> Mapping[str, str]:
        path = self.against
        if path is None:
            return {}
        try:
            return {str(row["id"]): str(row["prediction"]) for row in read_rows(path)}
        except (OSError, KeyError, TypeError) as error:
            raise UserError(f"{path}: holds no predictions to judge against: {error!r}") from None

    def statistics(self, prediction: Prediction, example: Example) -> Statistics | None:
        """Returns those of a failure, which is as bad as can be; all else takes reading.

        Raises:
            MetricError: There is a prediction.
        """
        if not example.references:
            return None
        if prediction.prediction:
            raise MetricError("judge asks a reader: its scores are made by `run`, not afterwards")
        return self._told(0.0, example)

    def ask(
        self, prediction: Prediction, example: Example
    ) -> Generator[Sequence[Read], Sequence[Output], Statistics | None]:
        """Yields one read, or two of a pair; returns the statistics of the example."""
        if not example.references or not prediction.prediction:
            return self.statistics(prediction, example)
        reads = [*self._reads(prediction, example)]
        if not reads:  # the other run has no such example
            return None
        outputs = yield reads
        verdicts = [
            self._verdict(output.text, swapped=bool(place)) for place, output in enumerate(outputs)
        ]
        known = [verdict for verdict in verdicts if verdict is not None]
        return self._told(fmean(known) if known == verdicts else None, example)

    def score(self, statistics: Statistics) -> float:
        """Returns the example's score; 0 where the judge said none."""
        return float(statistics["judge"] or 0.0)

    def row(self, statistics: Statistics) -> Sequence[float]:
        """Returns the score, and whether there is one."""
        return [self.score(statistics), statistics["judge"] is not None]

    def of_row(self, row: Sequence[float]) -> float:
        """Returns the mean over what was judged."""
        total, judged = row
        return total / max(judged, 1)

    def aggregate(self, statistics: Sequence[Statistics]) -> dict[str, float]:
        """Returns mean, share without a verdict, and agreement with metrics and with people."""
        if not statistics:
            return {}
        judged = [each for each in statistics if each["judge"] is not None]
        scores = {"judge_unanswered": round(100 - 100 * len(judged) / len(statistics), 4)}
        if judged:
            scores = {"judge": round(fmean(each["judge"] for each in judged), 4), **scores}
        for name in dict.fromkeys(name for each in judged for name in each["beside"]):
            both = [(e["judge"], e["beside"][name]) for e in judged if name in e["beside"]]
            if len(both) > _FEW:
                scores[f"judge_agrees[{name}]"] = round(100 * _spearman(both), 4)
        return scores

    def _told(self, score: float | None, example: Example) -> Statistics:
        human = example.metadata.get("human")
        known = isinstance(human, (int, float)) and not isinstance(human, bool)
        return {"judge": score, "beside": {"people": float(human)} if known else {}}  # type: ignore[arg-type]

    def _reads(self, prediction: Prediction, example: Example) -> Iterator[Read]:
        question, reference = example.question or example.instruction, example.references[0]
        if self.mode == "pointwise":
            marks = tuple(map(str, range(self.scale + 1)))
            shown = [f"Reference: {reference}", f"Answer: {prediction.prediction}"]
            ask = f"Which mark from 0 (worst) to {self.scale} (best) does the answer get?"
            yield self._read([f"Question: {question}", *shown], ask, marks)
            return
        other = self._others.get(example.id) if self.against else reference
        if other is None:
            return
        ask = "Which answer is better, the first or the second, or are they equal?"
        for first, second in ((prediction.prediction, other), (other, prediction.prediction)):
            known = [f"Reference: {reference}"] if self.against else []
            shown = [*known, f"First answer: {first}", f"Second answer: {second}"]
            yield self._read([f"Question: {question}", *shown], ask, _PAIR)

    def _read(self, texts: Sequence[str], ask: str, choices: tuple[str, ...]) -> Read:
        return Read(tuple(texts), ask, self.rubric, choices, role=self.role)

    def _verdict(self, text: str, *, swapped: bool) -> float | None:
        """Returns what a judge said, 0 to 100; None where it is no verdict."""
        if self.mode == "pointwise":
            mark = _NUMBER.search(text)
            known = mark is not None and int(mark[0]) <= self.scale
            return 100 * int(mark[0]) / self.scale if mark and known else None
        said = [name for name in _PAIR if name in text.lower()]
        if len(said) != 1:
            return None
        own = _PAIR[swapped]
        return 50.0 if said[0] == "equal" else 100.0 * (said[0] == own)


def _spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Returns Spearman's correlation; 0 where one side is all the same."""
    from scipy.stats import spearmanr

    first, second = (set(side) for side in zip(*pairs, strict=True))
    if min(len(first), len(second)) == 1:
        return 0.0
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)
