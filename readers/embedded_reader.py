"""Reader with the small models of the package, which do not need torch."""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from leporello.core.protocols import ModelSource
from leporello.core.records import Chunk, Output, Read, Span
from leporello.models.calibration import TakesCalibration, calibrated
from leporello.models.locate import locate
from leporello.readers.prompting.template import (
    encodable,
    passage_text,
    refuse_pairs,
    span_in,
    spans_of,
)
from leporello.text.english.questions import Wanted, asks_yes_no, is_statement, wanted
from leporello.text.typed.parse import kind_of
from leporello.text.typed.spans import TypedSpan, best_typed

if TYPE_CHECKING:
    from leporello.readers.embedded.answers import Answered, Confidence
    from leporello.readers.embedded.choices import ChoiceRanker
    from leporello.readers.embedded.spans import Candidate, SpanHead
    from leporello.readers.embedded.statements import StatementJudge
    from leporello.readers.embedded.summaries import Summariser

_SHIPPED = "leporello-en"
_NOTHING = -1e9  # score without any text to read; JSON cannot represent infinity
# Share of yes among 11,965 yes/no questions of nine free sets: the odds do not predict which.
_YES = 0.57
# Share of refusals that are right if one question in five has no answer: of questions of four
# development tasks, 10 of 208 are refused on their own document, and 122 of 211 on another one.
_REFUSED = 0.75
# An instruction such as ZeroSCROLLS' `by writing its corresponding letter (either A, B, C, or D)`.
_BY_LETTER = re.compile(r"\bletter\b(?:(?!\bletter\b)[^.])*?\bA\b(?:(?!\bA\b)[^.])*?\bB\b")
# ContractNLI's labels, since the judge was trained on them.
_LABELS = ("Not mentioned", "Entailment", "Contradiction")  # for a statement without choices


@dataclass(frozen=True)
class Embedded(TakesCalibration):
    """Answers, chooses, judges and summarises with small models of the package; English.

    The kind of the read selects the model:

    - a type: returns the best span with such a value; yes or no if the passages support or
      contradict the question as a statement;
    - choices: returns the most probable one, or its letter if the instruction asks for a letter. If
      the choices are labels of an inference (`Entailment`, `Contradiction`, `Not mentioned`),
      judges the question as a statement;
    - a statement without choices: returns one of these labels;
    - no question, or one for a summary: returns sentences of the passages in document order;
    - any other question: returns a span, `yes`, or one of two names in the question. Spans of all
      passages are compared by log odds against no answer; equal spans are combined. In rows of
      tables, the span is a cell of the row whose values the question contains.

    Attributes:
        model: Path of a folder that recipes wrote, or name of the models of the package, which also
            replace missing parts of the folder.
        threshold: Least log odds that a passage answers the question; below it the question is
            not answered. With null, every question is answered.
        unanswerable: Text of the output for a question that is not answered.
        calibration: JSON file that `train --calibrate` wrote, from scores to probabilities.
            Without it, the calibration of the model's folder applies to answers, choices and labels
            have the probabilities of their models, and summaries have none.
        precision: `auto` computes answers in 8 bits where the processor has units for it (VNNI),
            in half the time; scores differ by a few hundredths. `float32` gives the same answers
            on all processors.
    """

    model: ModelSource = _SHIPPED
    threshold: float | None = None
    unanswerable: str = ""
    calibration: Path | None = None
    precision: Literal["auto", "float32"] = "auto"

    def load(self) -> None:
        """Loads the encoder, which `read` otherwise does on first use."""
        _ = self._encoder

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output per input; scores are log odds, or log-probabilities of choices."""
        refuse_pairs(inputs)
        return calibrated([self._method(read)(read) for read in inputs], self.calibration)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the number of tokens of each text, without special tokens."""
        return [len(text.ids) for text in self._encoder.tokenize(texts)]

    def render(self, read: Read) -> str:
        """Returns the texts that are read: the question and the passages."""
        return "\n\n".join(filter(None, [read.question, *map(passage_text, read.passages)]))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: all, since long ones are read in segments."""
        return len(read.passages)

    @property
    def language(self) -> str:
        """Language of the model in ISO 639-1; empty if unknown."""
        from leporello.models.weights import ModelFolder

        return str(ModelFolder(self._part("answers")).config().get("language", ""))

    def _method(self, read: Read) -> Callable[[Read], Output]:
        """Returns the method that reads an input of this kind."""
        from leporello.readers.embedded.statements import label_order

        if read.schema and kind_of(json.loads(read.schema)) == "yes_no":
            return self._answer if asks_yes_no(read.question) else self._judge_yes_no
        if read.choices:
            return self._choose if label_order(read.choices) is None else self._judge
        if read.schema:
            return self._answer
        if wanted(read.question, read.instruction, _texts(read)) is not Wanted.SHORT:
            return self._summarise
        return self._judge if is_statement(read.question) else self._answer

    def _answer(self, read: Read) -> Output:
        from leporello.readers.embedded.answers import answer_question
        from leporello.readers.embedded.rows import looked_up

        answered = answer_question(self._encoder, read.question, _texts(read))
        candidates = looked_up(read.question, read.passages, answered.candidates)
        answered = replace(answered, candidates=candidates)
        # The odds of passages predict better whether there is an answer than the score of the best
        # candidate, which depends more on the number of passages.
        least = -math.inf if self.threshold is None else self.threshold
        if not answered.candidates or max(answered.odds) < least:
            return self._refusal(read, answered)
        if read.schema and not read.choices:
            return self._typed(read, answered)
        best = answered.candidates[0]
        return self._output(read, answered, 0, best, best.text)

    def _refusal(self, read: Read, answered: Answered) -> Output:
        """Returns an output without an answer, with the probability that none is right."""
        spans = spans_of(read.passages)
        if not answered.candidates:
            return Output(self.unanswerable, _NOTHING, read=spans)
        answerable = self._probability(answered.candidates)
        right = None if answerable is None else min(1 - answerable, _REFUSED)
        score = answered.candidates[0].score
        return Output(self.unanswerable, score, read=spans, probability=right)

    def _typed(self, read: Read, answered: Answered) -> Output:
        spans = [(c.passage, c.start, c.end) for c in answered.candidates]
        texts = _texts(read)
        best = best_typed(read.schema, spans, texts)
        if best is None:
            return replace(self._refusal(read, answered), score=_NOTHING)
        text = texts[best.passage][best.start : best.end]
        return self._output(read, answered, best.rank, best, text)

    def _output(
        self, read: Read, answered: Answered, rank: int, place: Candidate | TypedSpan, text: str
    ) -> Output:
        """Returns the output with a candidate of this rank: its place and its text."""
        candidates = answered.candidates[rank:]
        probability = self._probability(candidates)
        if probability is not None and asks_yes_no(read.question):
            probability = min(probability, _YES)
        return Output(
            " ".join(text.split()),
            candidates[0].score,
            read=spans_of(read.passages),
            span=_span(read, place),
            probability=probability,
        )

    def _probability(self, candidates: Sequence[Candidate]) -> float | None:
        """Returns the probability that the first candidate is right; None if it is unknown."""
        from leporello.readers.embedded.answers import Signals

        if self._confidence is None:
            return None
        return self._confidence.probability(Signals.of(candidates))

    @cached_property
    def _confidence(self) -> Confidence | None:
        from leporello.models.weights import ModelFolder
        from leporello.readers.embedded.answers import Confidence

        row = ModelFolder(self._part("answers")).config().get("confidence")
        return Confidence(**row) if row else None

    def _judge_yes_no(self, read: Read) -> Output:
        """Returns yes for a statement that the passages support, no for one they contradict."""
        answers = {"Entailment": "yes", "Contradiction": "no"}
        output = self._judge(replace(read, choices=()))
        return replace(output, text=answers.get(output.text, self.unanswerable))

    def _choose(self, read: Read) -> Output:
        choice = self._choices.choose(read.question, read.choices, _texts(read))
        labels = string.ascii_uppercase if _BY_LETTER.search(read.instruction) else read.choices
        return _chosen(read, labels, choice.probabilities, choice.place)

    def _judge(self, read: Read) -> Output:
        from leporello.readers.embedded.statements import judge_claim, label_order

        statement, texts = read.question, _texts(read)
        # Tasks such as contract_nli give labels as choices; a claim of a user has none.
        if read.choices or self._statements.knows(statement):
            judgement = self._statements.judge(statement, texts)
        else:
            judgement = judge_claim(self._verdicts, statement, texts)
        labels = read.choices or _LABELS
        order = label_order(labels) or (0, 1, 2)
        odds = [judgement.probabilities[order.index(n)] for n in range(len(labels))]
        return _chosen(read, labels, odds, judgement.place)

    def _summarise(self, read: Read) -> Output:
        from leporello.readers.embedded.summaries import text_of

        # Hits are in the order of their scores; a summary follows the document.
        texts = [passage_text(p) for p in sorted(read.passages, key=_place)]
        units, score = self._summaries.select(texts, read.question, read.instruction)
        return Output(text_of(texts, units), score, read=spans_of(read.passages))

    def _part(self, name: str) -> Path:
        """Returns the folder of a model, in the package if `model` lacks it."""
        folder = Path(locate(self.model)) / name
        # A recipe trains one part; the package has the others.
        return folder if folder.exists() or name == "answers" else Path(locate(_SHIPPED)) / name

    @cached_property
    def _encoder(self) -> SpanHead:
        from leporello.readers.embedded.spans import SpanHead

        return SpanHead(self._part("answers"), precision=self.precision)

    @cached_property
    def _choices(self) -> ChoiceRanker:
        from leporello.readers.embedded.choices import ChoiceRanker

        return ChoiceRanker(self._part("choices"), self._encoder)

    @cached_property
    def _statements(self) -> StatementJudge:
        from leporello.readers.embedded.statements import StatementJudge

        return StatementJudge(self._part("statements"), self._encoder)

    @cached_property
    def _verdicts(self) -> SpanHead:
        from leporello.readers.embedded.spans import SpanHead

        difference = self._part("verdicts")  # relative to the encoder in the same folder
        return SpanHead(difference.parent / "answers", difference)

    @cached_property
    def _summaries(self) -> Summariser:
        from leporello.models.weights import ModelFolder
        from leporello.readers.embedded.summaries import Summariser

        return Summariser(ModelFolder(self._part("summaries")))


def _chosen(
    read: Read, labels: Sequence[str], odds: Sequence[float], place: Candidate | None
) -> Output:
    best = max(range(len(odds)), key=odds.__getitem__)
    logs = tuple(math.log(max(probability, 1e-12)) for probability in odds)
    scores = logs if read.choices else ()
    spans, probability, span = spans_of(read.passages), odds[best], _span(read, place)
    return Output(labels[best], logs[best], scores, read=spans, span=span, probability=probability)


def _texts(read: Read) -> list[str]:
    return [encodable(passage_text(passage)) for passage in read.passages]


def _place(passage: Chunk | str) -> int:
    """Returns the offset of a passage, by which passages are sorted; -1 for a literal text."""
    return passage.start if isinstance(passage, Chunk) else -1


def _span(read: Read, place: Candidate | TypedSpan | None) -> Span | None:
    if not place or not read.passages or place.start >= place.end:
        return None
    return span_in(read.passages[place.passage], place.start, place.end)
