"""Small readers of our own that come with the package and need no torch."""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from leporello.core.protocols import Count, ModelSource
from leporello.core.records import Chunk, Output, Read, Span
from leporello.models.calibration import Calibration, TakesCalibration, calibrated
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
from leporello.text.typed.spans import best_typed

if TYPE_CHECKING:
    from leporello.readers.embedded.answers import Answered
    from leporello.readers.embedded.choices import ChoiceRanker
    from leporello.readers.embedded.encoder import Encoder
    from leporello.readers.embedded.statements import ClaimJudge, StatementJudge
    from leporello.readers.embedded.summaries import Summariser

_SHIPPED = "leporello-en"
_NOTHING = -1e9  # the score where there was nothing to read; JSON has no infinity
# An instruction such as ZeroSCROLLS' `by writing its corresponding letter (either A, B, C, or D)`.
_BY_LETTER = re.compile(r"\bletter\b(?:(?!\bletter\b)[^.])*?\bA\b(?:(?!\bA\b)[^.])*?\bB\b")
_LABELS = ("Not mentioned", "Entailment", "Contradiction")  # of a statement without choices


@dataclass(frozen=True)
class Embedded(TakesCalibration):
    """Answers, chooses, judges and summarises with small models of the package; English.

    What a read asks for decides which of them reads it:

    - a type: the best span that has such a value; yes or no by the judgement of a statement;
    - choices: the likeliest of them, or its letter where the instruction asks for that; the labels
      of an inference (`Entailment`, `Contradiction`, `Not mentioned`) are told of the statement
      that stands as the question;
    - a statement without choices: one of these labels;
    - no question, or one for a summary: sentences of the passages in the document's order;
    - any other question: a span, `yes`, or one of two names that it gives. Spans compare over all
      passages by log odds against no answer, and equal ones of several passages are one.

    Attributes:
        model: Path of a folder that recipes wrote, or the name of the one that comes with the
            package, which has what the folder lacks.
        threshold: Log odds that any passage says something to a question, below which it is not
            answered; null always answers.
        unanswerable: Text where a question is not answered.
        joined: Number of pairs of paragraphs that are read together besides, for questions that
            need two.
        summary_words: Number of words of a summary at most; null is as many as such a summary
            usually has.
        calibration: JSON file that `train --calibrate` wrote, from probabilities to better ones.
            Without it answers are as likely as the model's folder says, choices and labels as
            their model says, and summaries have no probability.
    """

    model: ModelSource = _SHIPPED
    threshold: float | None = None
    unanswerable: str = ""
    joined: Count = 0
    summary_words: int | None = None
    calibration: Path | None = None

    def load(self) -> None:
        """Loads the encoder, which is otherwise done when it first reads."""
        _ = self._encoder

    def read(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns one output an input, in order; scores are log odds, of choices log-probabilities.

        Raises:
            UserError: The weights are missing or damaged.
        """
        refuse_pairs(inputs)
        groups: dict[Callable[[Sequence[Read]], list[Output]], list[int]] = {}
        for number, read in enumerate(inputs):
            groups.setdefault(self._method(read), []).append(number)
        outputs = {
            number: output
            for method, numbers in groups.items()
            for number, output in zip(numbers, method([inputs[n] for n in numbers]), strict=True)
        }
        in_order = [outputs[number] for number in range(len(inputs))]
        return calibrated(in_order, self.calibration)

    def count(self, texts: Sequence[str]) -> list[int]:
        """Returns the tokens of each text, special tokens left out."""
        return [len(text.ids) for text in self._encoder.tokenize(texts)]

    def render(self, read: Read) -> str:
        """Returns what is read: the question, and each passage on its own."""
        return "\n\n".join(filter(None, [read.question, *map(passage_text, read.passages)]))

    def fit(self, read: Read) -> int:
        """Returns how many leading passages fit: all, for each is read in windows of its own."""
        return len(read.passages)

    @property
    def language(self) -> str:
        """What the model reads, as ISO 639-1 has it; empty if it does not say."""
        from leporello.models.weights import ModelFolder

        return str(ModelFolder(self._part("answers")).config().get("language", ""))

    def _method(self, read: Read) -> Callable[[Sequence[Read]], list[Output]]:
        """Returns what reads such an input."""
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

    def _answer(self, inputs: Sequence[Read]) -> list[Output]:
        from leporello.readers.embedded.answers import answer_all

        asked = [(read.question, _texts(read)) for read in inputs]
        found = answer_all(self._encoder, asked, self.joined)
        pairs = [*zip(inputs, found, strict=True)]
        outputs = calibrated([self._answered(*pair) for pair in pairs], self._answers_calibration)
        told = [self._refuses(answered) for answered in found]
        return [_refused(o) if no else o for o, no in zip(outputs, told, strict=True)]

    def _refuses(self, answered: Answered) -> bool:
        least = -math.inf if self.threshold is None else self.threshold
        return not answered.candidates or answered.odds < least

    def _answered(self, read: Read, answered: Answered) -> Output:
        if self._refuses(answered):
            score = answered.candidates[0].score if answered.candidates else _NOTHING
            return Output(self.unanswerable, score, read=spans_of(read.passages))
        best = answered.candidates[0]
        if read.schema and not read.choices:
            return self._typed(read, answered)
        span = _span(read, best.passage, best.start, best.end)
        return Output(best.text, best.score, read=spans_of(read.passages), span=span)

    @cached_property
    def _answers_calibration(self) -> Calibration | None:
        """How likely answers are by their scores; None for a model whose folder does not say."""
        from leporello.models.weights import ModelFolder

        found = ModelFolder(self._part("answers")).config().get("calibration")
        return Calibration.from_row(found) if found else None

    def _typed(self, read: Read, answered: Answered) -> Output:
        """Returns the best value of the type that is asked for."""
        spans = [(each.passage, each.start, each.end) for each in answered.candidates]
        texts = _texts(read)
        found = best_typed(read.schema, spans, texts)
        if found is None:
            return Output(self.unanswerable, _NOTHING, read=spans_of(read.passages))
        text = texts[found.passage][found.start : found.end]
        score = answered.candidates[found.rank].score
        span = _span(read, found.passage, found.start, found.end)
        return Output(text, score, read=spans_of(read.passages), span=span)

    def _judge_yes_no(self, inputs: Sequence[Read]) -> list[Output]:
        """Returns yes for what the passages say, no for what they deny."""
        said = {"Entailment": "yes", "Contradiction": "no"}
        outputs = self._judge([replace(read, choices=()) for read in inputs])
        return [replace(each, text=said.get(each.text, self.unanswerable)) for each in outputs]

    def _choose(self, inputs: Sequence[Read]) -> list[Output]:
        asked = [(read.question, read.choices, _texts(read)) for read in inputs]
        outputs = []
        for read, choice in zip(inputs, self._choices.choose(asked), strict=True):
            at = choice.span
            span = _span(read, at.passage, at.start, at.end) if at else None
            by_letter = _BY_LETTER.search(read.instruction)
            told = string.ascii_uppercase if by_letter else read.choices
            outputs.append(_chosen(read, told, choice.index, choice.probabilities, span))
        return outputs

    def _judge(self, inputs: Sequence[Read]) -> list[Output]:
        from leporello.readers.embedded.statements import label_order

        # Labels as choices are a task's, as contract_nli's are; what a person claims has none.
        free = [not r.choices and not self._statements.knows(r.question) for r in inputs]
        asked = [(read.question, _texts(read)) for read in inputs]
        parts = [
            iter(
                judge.judge(
                    [one for one, is_free in zip(asked, free, strict=True) if is_free is way]
                )
            )
            for way, judge in ((False, self._statements), (True, self._claims))
        ]
        outputs = []
        for read, is_free in zip(inputs, free, strict=True):
            found = next(parts[is_free])
            labels = read.choices or _LABELS
            places = label_order(labels) or (0, 1, 2)
            odds = [found.probabilities[places.index(n)] for n in range(len(labels))]
            best = max(range(len(odds)), key=odds.__getitem__)
            span = _span(read, found.passage, found.start, found.end)
            outputs.append(_chosen(read, labels, best, odds, span))
        return outputs

    def _summarise(self, inputs: Sequence[Read]) -> list[Output]:
        outputs = []
        for read in inputs:
            texts = [passage_text(p) for p in sorted(read.passages, key=_place)]
            found = self._summaries.summarise(
                texts, read.question, read.instruction, self.summary_words
            )
            outputs.append(Output(found.text, found.score, read=spans_of(read.passages)))
        return outputs

    def _part(self, name: str) -> Path:
        """Returns the folder of one of the models."""
        own = Path(locate(self.model)) / name
        return own if own.exists() or name == "answers" else Path(locate(_SHIPPED)) / name

    @cached_property
    def _encoder(self) -> Encoder:
        from leporello.readers.embedded.encoder import Encoder

        return Encoder(self._part("answers"))

    @cached_property
    def _choices(self) -> ChoiceRanker:
        from leporello.readers.embedded.choices import ChoiceRanker
        from leporello.readers.embedded.spans import SpanHead

        return ChoiceRanker(self._part("choices"), SpanHead(self._encoder))

    @cached_property
    def _statements(self) -> StatementJudge:
        from leporello.readers.embedded.spans import SpanHead
        from leporello.readers.embedded.statements import StatementJudge

        return StatementJudge(self._part("statements"), SpanHead(self._encoder))

    @cached_property
    def _claims(self) -> ClaimJudge:
        from leporello.readers.embedded.encoder import Encoder
        from leporello.readers.embedded.spans import SpanHead
        from leporello.readers.embedded.statements import ClaimJudge

        difference = self._part("verdicts")  # from the encoder beside it, and from no other
        return ClaimJudge(SpanHead(Encoder(difference.parent / "answers", difference)))

    @cached_property
    def _summaries(self) -> Summariser:
        from leporello.models.weights import ModelFolder
        from leporello.readers.embedded.summaries import Summariser

        return Summariser(ModelFolder(self._part("summaries")))


def _chosen(
    read: Read, labels: Sequence[str], best: int, odds: Sequence[float], span: Span | None
) -> Output:
    scores = tuple(math.log(max(each, 1e-12)) for each in odds)
    told = scores if read.choices else ()
    seen, likely = spans_of(read.passages), odds[best]
    return Output(labels[best], scores[best], told, read=seen, span=span, probability=likely)


def _refused(output: Output) -> Output:
    """Returns an output that says that there is no answer: as likely as the best one is wrong."""
    likely = output.probability
    return output if likely is None else replace(output, probability=1 - likely)


def _texts(read: Read) -> list[str]:
    return [encodable(passage_text(passage)) for passage in read.passages]


def _place(passage: Chunk | str) -> int:
    """Returns where a passage stands; texts that are no chunks keep their order."""
    return passage.start if isinstance(passage, Chunk) else -1


def _span(read: Read, index: int, start: int, end: int) -> Span | None:
    """Returns the span of the document for one of a passage; None for an empty one."""
    return span_in(read.passages[index], start, end) if read.passages and start < end else None
